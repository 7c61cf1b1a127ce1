package boostd

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"scaffold.dev/scaffold/internal/boost/ends"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// hostNames are services as the host that this machine is serves them and asks for them.
type hostNames struct{ kernelEnds }

func (hostNames) Listen(at netip.AddrPort) (net.Listener, error) { return ends.ListenName(at) }

func (h hostNames) Dial(ctx context.Context, at netip.AddrPort) (*net.TCPConn, error) {
	c, err := ends.DialName(ctx, at)
	switch {
	case errors.Is(err, ends.ErrRefused):
		err = &trunk.Refused{Reason: frame.RefusedByHost}
	case errors.Is(err, ends.ErrSilent):
		err = &trunk.Refused{Reason: frame.Silence}
	case err != nil:
		h.log.Warn("no connection to a service", "service", at, "why", err)
		err = &trunk.Refused{Reason: frame.NoRoom}
	}
	return c, err
}
