package boostd

import (
	"context"
	"net"
	"net/netip"

	"scaffold.dev/scaffold/internal/boost/ends"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/legs"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// legs are the connections of this agent that switches rewrite.
func (s *Settings) legs(k kernelEnds) *legs.Legs {
	var own []netip.Addr
	for _, a := range s.Addresses() {
		own = append(own, a.Addr().Unmap())
	}
	return legs.New(own, kernelLegs{k})
}

// kernelLegs are the kernel's sockets with ports of their own.
type kernelLegs struct{ kernelEnds }

func (k kernelLegs) Await(own netip.Addr, client netip.AddrPort) (legs.Awaited, error) {
	w, err := k.Ends.Await(own, client)
	if err != nil {
		return nil, err
	}
	return awaited{w, k}, nil
}

func (k kernelLegs) Dial(ctx context.Context, own netip.Addr, server netip.AddrPort, ready func(netip.AddrPort) error) (*net.TCPConn, frame.Options, frame.Options, error) {
	port, err := ends.Take(own)
	if err == nil {
		defer port.Close()
		err = ready(port.At)
	}
	if err != nil {
		k.log.Warn("no connection to a server", "server", server, "why", err)
		return nil, frame.Options{}, frame.Options{}, &trunk.Refused{Reason: frame.NoRoom}
	}
	return k.kernelEnds.Dial(ctx, port.At, server)
}

// An awaited is a port where a client is waited for, as an agent wants it.
type awaited struct {
	w *ends.Awaited
	k kernelLegs
}

func (a awaited) At() netip.AddrPort { return a.w.At }
func (a awaited) Close() error       { return a.w.Close() }

func (a awaited) Accept(ctx context.Context) (*net.TCPConn, frame.Options, error) {
	c, err := a.w.Accept(ctx)
	return c, a.k.own(c, err), err
}
