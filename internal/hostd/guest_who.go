package hostd

import (
	"net/netip"
)

func (g *guests) call(number uint16, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.called[number] = name
	if name == "" {
		delete(g.called, number)
	}
}

// name is what a guest is called, "" for the host itself. For every goroutine.
func (g *guests) name(number uint16) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.called[number]
}

// where says in which guest something is, for people.
func (g *guests) where(number uint16) string {
	if x := g.up[number]; x != nil {
		return " in guest " + x.Name
	}
	return ""
}

// at is the address and the namespace of a guest, or of the host itself.
func (g *guests) at(number uint16) (netip.Addr, namespace) {
	if x := g.up[number]; x != nil {
		return x.identity, x.ns
	}
	return g.d.home.Space.Identity(g.d.identity), namespace{}
}
