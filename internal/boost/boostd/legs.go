package boostd

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"scaffold.dev/scaffold/internal/boost/ends"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/legs"
)

// legs are the connections of this agent that switches rewrite.
func (s *Settings) legs(k kernelEnds) *legs.Legs {
	var own []netip.Addr
	for _, a := range s.Addresses() {
		own = append(own, a.Addr().Unmap())
	}
	return legs.New(own, &kernelLegs{kernelEnds: k, ports: map[netip.AddrPort]*ends.Port{}})
}

// kernelLegs are the kernel's sockets with ports of their own.
type kernelLegs struct {
	kernelEnds
	mu    sync.Mutex
	ports map[netip.AddrPort]*ends.Port // that are nobody else's
}

func (k *kernelLegs) Await(own netip.Addr, client netip.AddrPort) (legs.Awaited, error) {
	w, err := k.Ends.Await(own, client)
	if err != nil {
		return nil, err
	}
	return awaited{w, k}, nil
}

func (k *kernelLegs) Dial(ctx context.Context, own netip.Addr, server netip.AddrPort, ready func(netip.AddrPort) error) (*net.TCPConn, frame.Options, frame.Options, error) {
	port, err := ends.Take(own)
	if err == nil {
		k.mu.Lock()
		k.ports[port.At] = port
		k.mu.Unlock()
		err = ready(port.At)
	}
	if err != nil {
		return nil, frame.Options{}, frame.Options{}, k.refusal(err, own, server)
	}
	c, host, err := k.DialFrom(ctx, port, server)
	if wrong := port.Keep(); wrong != nil {
		k.log.Warn("others may use an agent's port", "port", port.At, "why", wrong)
	}
	return c, host, k.own(c, err), k.refusal(err, port.At, server)
}

// Free gives a port up.
func (k *kernelLegs) Free(at netip.AddrPort) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if port := k.ports[at]; port != nil {
		delete(k.ports, at)
		port.Close()
	}
}

// An awaited is a port where a client is waited for, as an agent wants it.
type awaited struct {
	w *ends.Awaited
	k *kernelLegs
}

func (a awaited) At() netip.AddrPort { return a.w.At }
func (a awaited) Close() error       { return a.w.Close() }

func (a awaited) Accept(ctx context.Context) (*net.TCPConn, frame.Options, error) {
	c, err := a.w.Accept(ctx)
	return c, a.k.own(c, err), err
}
