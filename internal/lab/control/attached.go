package control

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// attachTime bounds how long a host may take to attach to the router it was just plugged into.
const attachTime = 20 * time.Second

// Attached waits until the host has a locator on a link to the node.
func (c *Control) Attached(ctx context.Context, n *plan.Node, to string) error {
	if c.Stub || c.Plan.File.Bare {
		return nil
	}
	client, base, err := api.Dial("unix:" + c.Dir.Socket(n))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	local := apiv1connect.NewLocalClient(client, base)
	ctx, cancel := context.WithTimeoutCause(ctx, attachTime, fmt.Errorf("not attached in %v", attachTime))
	defer cancel()
	return poll.Until(ctx, func() error {
		s, err := local.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return fmt.Errorf("%s (host) does not answer: %w", n.Name, err)
		}
		for _, u := range s.Msg.Uplinks {
			if p := n.Port(u.Interface); p != nil && p.Far.Name == to && u.Up && u.Locator != "" {
				return nil
			}
		}
		return fmt.Errorf("%s has no address at %s: %v", n.Name, to, s.Msg.Uplinks)
	})
}
