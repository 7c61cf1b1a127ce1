package boostd

import (
	"context"
	"net"
	"net/netip"

	"scaffold.dev/scaffold/internal/boost/ends"
)

// hostNames are services as the host that this machine is serves them and asks for them.
type hostNames struct{ kernelEnds }

func (hostNames) Listen(at netip.AddrPort) (net.Listener, error) { return ends.ListenName(at) }

func (h hostNames) Dial(ctx context.Context, at netip.AddrPort) (*net.TCPConn, error) {
	c, err := ends.DialName(ctx, at)
	return c, h.refusal(err, "this host", at)
}
