package guests

import (
	"errors"
	"net/netip"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

func (g *Guests) call(number uint16, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.called[number] = name
	if name == "" {
		delete(g.called, number)
	}
}

// NameOf is what a guest is called, "" for the host itself. For every goroutine.
func (g *Guests) NameOf(number uint16) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.called[number]
}

// At is the address and the namespace of a guest that is up.
func (g *Guests) At(number uint16) (netip.Addr, Namespace, bool) {
	x := g.up[number]
	if x == nil {
		return netip.Addr{}, Namespace{}, false
	}
	return x.identity, x.ns, true
}

// Serving is how a guest that is up serves: what it is called, and the address that its wildcard listeners serve.
func (g *Guests) Serving(number uint16) (name string, address netip.Addr, ok bool) {
	x := g.up[number]
	if x == nil {
		return "", netip.Addr{}, false
	}
	return x.Name, x.Address, true
}

// Watched are the hooks that report guests' sockets.
func (g *Guests) Watched() (all []*sockets.Host) {
	for _, x := range g.up {
		if x.socks != nil {
			all = append(all, x.socks)
		}
	}
	return all
}

// Each visits the sockets of all guests.
func (g *Guests) Each(proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) (err error) {
	for _, x := range g.up {
		err = errors.Join(err, x.diag.Each(proto, states, port, f))
	}
	return err
}

// In visits the sockets of a guest that is up.
func (g *Guests) In(number uint16, proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error {
	if x := g.up[number]; x != nil {
		return x.diag.Each(proto, states, port, f)
	}
	return nil
}
