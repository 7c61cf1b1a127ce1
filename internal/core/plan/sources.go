package plan

import "scaffold.dev/scaffold/sid"

// From where a packet may come: at a port at which a host is, or was while its locator is still its own, all locators that
// the host has or had. It sends from those of before until its peers know where it is (docs/protocol.md §5.4, §6.3).

// A holding is a locator that a host has left, and where it was.
type holding struct{ host, router, port string }

// SetHeld says that a locator is a host's still, or only the port at which it was with it before; host "" ends that. A
// router may be "": nobody knows where it was.
func (p *Plan) SetHeld(l sid.Locator, hostName, router, port string) {
	now := holding{hostName, router, port}
	if was, ok := p.held[l]; ok {
		if was == now {
			return
		}
		p.touchSources(was.host)
		drop(p.holds, was.host, l)
		drop(p.heldAt, was.router, l)
		delete(p.held, l)
	}
	if hostName == "" {
		return
	}
	p.held[l] = now
	enter(p.holds, hostName, l)
	enter(p.heldAt, router, l)
	p.touchSources(hostName)
}

// HeldBy is the host that a locator is held for, "" for none.
func (p *Plan) HeldBy(l sid.Locator) string { return p.held[l].host }

// DropHeld ends all that is held for a host.
func (p *Plan) DropHeld(hostName string) {
	for l := range p.holds[hostName] {
		p.SetHeld(l, "", "", "")
	}
}

func enter(m map[string]map[sid.Locator]struct{}, key string, l sid.Locator) {
	if m[key] == nil {
		m[key] = make(map[sid.Locator]struct{})
	}
	m[key][l] = struct{}{}
}

func drop(m map[string]map[sid.Locator]struct{}, key string, l sid.Locator) {
	if delete(m[key], l); len(m[key]) == 0 {
		delete(m, key)
	}
}

// touchSources marks the routers at which a host is or was.
func (p *Plan) touchSources(hostName string) {
	touch := func(router string) {
		if _, ok := p.routers[router]; ok {
			p.dirty.routers[router] = struct{}{}
		}
	}
	if h := p.hosts[hostName]; h != nil {
		for _, at := range h.at {
			touch(at.Router)
		}
	}
	for l := range p.holds[hostName] {
		touch(p.held[l].router)
	}
}

// sources are those of all ports of r at which hosts are or were.
func (p *Plan) sources(r *router) map[Source]Source {
	m := make(map[Source]Source)
	let := func(port string, l sid.Locator) {
		s := Source{Port: port, Locator: l}
		m[s] = s
	}
	all := func(hostName, port string) {
		if h := p.hosts[hostName]; h != nil {
			for l := range h.at {
				let(port, l)
			}
		}
		for l := range p.holds[hostName] {
			let(port, l)
		}
	}
	for l := range r.hosts {
		all(p.places[l].Name, p.places[l].Port)
	}
	for l := range p.heldAt[r.Name] {
		let(p.held[l].port, l)
		all(p.held[l].host, p.held[l].port)
	}
	return m
}
