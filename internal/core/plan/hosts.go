package plan

import (
	"cmp"

	"scaffold.dev/scaffold/sid"
)

// A host has a place for each of its uplinks. What it serves it serves at all of them; new flows are sent
// to one.
type host struct {
	name    string
	at      map[sid.Locator]*place // at least one
	prefers sid.Locator            // one of them
	triples map[sid.Triple]struct{}
}

type place struct {
	Host
	host *host
}

// place is where new flows go: the preferred one, unless it is gone and another is not. A preferred one
// that is only suspect is not left for another: whether to is the host's to say.
func (h *host) place() *place {
	if at := h.at[h.prefers]; at.State != HostGone {
		return at
	}
	return h.best()
}

// best is the place that is most alive; among equals the preferred one, then the one of the lowest locator.
func (h *host) best() *place {
	best := h.at[h.prefers]
	for _, at := range h.at {
		c := cmp.Compare(at.State, best.State)
		if c < 0 || c == 0 && best.Locator != h.prefers && at.Locator < best.Locator {
			best = at
		}
	}
	return best
}

// SetHost adds a host, or a further place of one, or changes how it is there. A host's first place is
// preferred until Prefer says otherwise.
func (p *Plan) SetHost(h Host) {
	have, ok := p.places[h.Locator]
	switch {
	case ok && have.Host == h:
		return
	case ok && have.Name != h.Name:
		p.RemoveHost(h.Locator)
		have = p.newPlace(h)
	case ok:
		p.detach(have)
	default:
		have = p.newPlace(h)
	}
	have.Host = h
	if r, ok := p.routers[h.Router]; ok {
		r.hosts[h.Locator] = struct{}{}
		p.dirty.routers[h.Router] = struct{}{}
	}
	p.touchHost(have.host)
	p.touchSources(h.Name)
}

func (p *Plan) newPlace(h Host) *place {
	owner, ok := p.hosts[h.Name]
	if !ok {
		owner = &host{name: h.Name, at: make(map[sid.Locator]*place), prefers: h.Locator, triples: make(map[sid.Triple]struct{})}
		p.hosts[h.Name] = owner
	}
	at := &place{host: owner}
	owner.at[h.Locator], p.places[h.Locator] = at, at
	p.touchLeft(h.Locator)
	return at
}

// RemoveHost withdraws the way to a host at one of its places and, with the last one, all that it
// registered.
func (p *Plan) RemoveHost(l sid.Locator) {
	at, ok := p.places[l]
	if !ok {
		return
	}
	h := at.host
	p.detach(at)
	p.touchSources(h.name)
	if len(h.at) == 1 {
		for t := range h.triples {
			p.Withdraw(h.name, t)
		}
		delete(p.hosts, h.name)
	}
	delete(h.at, l)
	delete(p.places, l)
	if h.prefers == l && len(h.at) > 0 {
		h.preferAny()
	}
	p.touchHost(h)
	p.touchLeft(l)
}

// preferAny finds a place to prefer where the host did not say.
func (h *host) preferAny() {
	h.prefers = 0
	for l := range h.at {
		if h.prefers == 0 || l < h.prefers {
			h.prefers = l
		}
	}
}

func (p *Plan) detach(at *place) {
	if r, ok := p.routers[at.Router]; ok {
		delete(r.hosts, at.Locator)
		p.dirty.routers[at.Router] = struct{}{}
	}
}

// Prefer says at which of its places a host wants new flows; false where it is not there.
func (p *Plan) Prefer(l sid.Locator) bool {
	at, ok := p.places[l]
	if ok && at.host.prefers != l {
		at.host.prefers = l
		p.touchHost(at.host)
	}
	return ok
}

// SetHostState records what the probes of a place say; false where no host is there.
func (p *Plan) SetHostState(l sid.Locator, s HostState) bool {
	at, ok := p.places[l]
	if ok && at.State != s {
		at.State = s
		p.touchHost(at.host)
	}
	return ok
}

func (p *Plan) touchHost(h *host) {
	for t := range h.triples {
		p.services[t.Service].touch(port{t.Proto, t.Port})
		p.dirty.services[t.Service] = struct{}{}
	}
}
