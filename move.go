package scaffold

import (
	"context"
	"fmt"
	"net"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Move lets a connection go on over another uplink of this host; see [Host.Move].
func Move(c net.Conn, uplink string) error {
	return local.Move(context.Background(), c, uplink)
}

// Move lets a connection, dialed or accepted, go on over another uplink of this host, such as "eth1". The
// connection stays on it until that is lost or it is moved again. Move returns once the move is under way;
// the old uplink serves until the peer has taken it. The error is [ErrRefused] for an interface that is no
// uplink, or is down.
func (h *Host) Move(ctx context.Context, c net.Conn, uplink string) error {
	id, err := h.Identify(ctx, c)
	if err != nil {
		return err
	}
	d, err := h.dial()
	if err != nil {
		return err
	}
	defer d.Close()
	res, err := d.local.MoveFlows(ctx, connect.NewRequest(&apiv1.MoveFlowsRequest{Flow: id.Stable.String(), To: uplink}))
	if err != nil {
		return fmt.Errorf("move to %s: %w", uplink, d.explain("moving flows", err))
	}
	if res.Msg.Moved == 0 {
		return fmt.Errorf("move to %s: %w: the connection may have ended, or it moves already", uplink, ErrRefused)
	}
	return nil
}
