package plan

import "scaffold.dev/scaffold/sid"

// What becomes of packets to a locator that its host has left: they follow it, or their senders are told
// that nobody is there. Both are rules of the router whose block the locator is in.

// SetRedirect sends what arrives for the locator from on to another; to 0 takes it back. A chain of them
// leads to its end at once. While a host is at from, or nobody at the end, there is no such rule.
func (p *Plan) SetRedirect(from, to sid.Locator) {
	p.redirects[from] = to
	if to == 0 {
		delete(p.redirects, from)
	}
	p.touchLeft(from)
}

// SetLeft says that nobody is at a locator any more; false takes it back. It is a rule while no host is
// there and no redirect is set, also one that waits for a host to be at its end.
func (p *Plan) SetLeft(l sid.Locator, left bool) {
	if _, was := p.left[l]; was == left {
		return
	}
	if left {
		p.left[l] = struct{}{}
	} else {
		delete(p.left, l)
	}
	p.touchOwner(l)
}

// touchLeft marks the routers whose rules for what was left depend on whether a host is at l.
func (p *Plan) touchLeft(l sid.Locator) {
	p.touchOwner(l)
	for from := range p.redirects {
		p.touchOwner(from)
	}
}

func (p *Plan) touchOwner(l sid.Locator) {
	if r := p.owner(l); r != nil {
		p.dirty.routers[r.Name] = struct{}{}
	}
}

// owner is the router whose block the locator is in.
func (p *Plan) owner(l sid.Locator) *router {
	for _, r := range p.routers {
		if r.owns(l) {
			return r
		}
	}
	return nil
}

func (r *router) owns(l sid.Locator) bool { return r.Block().Contains(l.Addr(0)) }

func (p *Plan) isPlace(l sid.Locator) bool { return p.places[l] != nil }

// leads follows redirects from a locator that nobody is at to one where somebody is; ok is false where
// they lead nowhere, or in a circle.
func (p *Plan) leads(from sid.Locator) (to sid.Locator, ok bool) {
	at := from
	for range len(p.redirects) {
		if p.isPlace(at) {
			return at, at != from
		}
		next, on := p.redirects[at]
		if !on {
			return 0, false
		}
		at = next
	}
	return at, at != from && p.isPlace(at)
}

func (p *Plan) redirectsAt(r *router) map[sid.Locator]Redirect {
	m := make(map[sid.Locator]Redirect)
	for from := range p.redirects {
		if !r.owns(from) {
			continue
		}
		if to, ok := p.leads(from); ok {
			m[from] = Redirect{From: from, To: to}
		}
	}
	return m
}

func (p *Plan) goneAt(r *router) map[sid.Locator]Gone {
	m := make(map[sid.Locator]Gone)
	for l := range p.left {
		if _, moves := p.redirects[l]; r.owns(l) && !p.isPlace(l) && !moves {
			m[l] = Gone{Locator: l}
		}
	}
	return m
}
