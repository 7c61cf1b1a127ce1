package scaffold

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// An Identity says what a connection is called throughout its life, wherever its ends are, and how far it
// has come. Instances that share a record of their sessions keep it under Stable.
type Identity struct {
	// Stable identifies the connection: it is the client's first address on the wire, and a server sees
	// it as the peer's address. It stays when either end moves and when another instance takes over.
	Stable netip.Addr
	// Resumed says that the connection began at another instance, which is gone or has shed it.
	Resumed bool
	// Received counts the bytes of the client's that were acknowledged before the connection came here.
	// The earlier instance may have read them or not; they will not come again.
	Received uint64
	// Sent counts the bytes that the client has received from earlier instances: the next byte written
	// here is that of the stream at this offset.
	Sent uint64
	// Service is the name of the service.
	Service string
}

// Identify tells what a connection is called and how far it has come; see [Host.Identify].
func Identify(c net.Conn) (Identity, error) {
	return local.Identify(context.Background(), c)
}

// Identify asks the host daemon about a connection of this host, accepted or dialed. The error is
// [ErrNoFlow] for a connection that does not go to or come from a service.
func (h *Host) Identify(ctx context.Context, c net.Conn) (Identity, error) {
	return h.IdentifyPeer(ctx, c.LocalAddr(), c.RemoteAddr())
}

// IdentifyPeer is Identify for what one peer sends to a socket that serves many, as UDP servers have.
func (h *Host) IdentifyPeer(ctx context.Context, at, peer net.Addr) (Identity, error) {
	d, err := h.dial()
	if err != nil {
		return Identity{}, err
	}
	defer d.Close()
	res, err := d.local.Identify(ctx, connect.NewRequest(&apiv1.IdentifyRequest{Proto: proto(at), Local: at.String(), Peer: peer.String()}))
	if err != nil {
		return Identity{}, fmt.Errorf("identify %v: %w", peer, d.explain("identities", err))
	}
	return identity(res.Msg)
}

func identity(m *apiv1.FlowIdentity) (Identity, error) {
	stable, err := netip.ParseAddr(m.Stable)
	if err != nil {
		return Identity{}, fmt.Errorf("the host daemon names the connection %q: %w", m.Stable, err)
	}
	return Identity{stable, m.Resumed, m.Received, m.Sent, m.Service}, nil
}

// proto is the protocol as the API names it.
func proto(a net.Addr) string {
	switch a.(type) {
	case *net.TCPAddr:
		return "tcp"
	case *net.UDPAddr:
		return "udp"
	}
	return a.Network()
}
