package plan

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A carrier is an instance that an agent of boost serves: it brings each connection to those who serve, by an agent at another
// site. Its clients are those behind the routers of its own site; all others, the other agent among them, are led to those
// who serve, as ever.

// sites are the sites of boost by the names of what is there.
type sites struct {
	routers map[string]string
	hosts   map[string]string // those on which the site's agents are
}

// SetSites says at which site of boost routers are, and hosts whose agents may serve names for these. Who is at none is left
// out. What an agent serves on a host at no site is nobody's.
func (p *Plan) SetSites(routers, hosts map[string]string) {
	if maps.Equal(routers, p.sites.routers) && maps.Equal(hosts, p.sites.hosts) {
		return // it is said again with each change of anything
	}
	for name := range p.routers {
		if _, turns := p.dirty.sites[name]; !turns && p.sites.routers[name] != routers[name] {
			p.dirty.sites[name] = p.sites.routers[name]
		}
	}
	for name, h := range p.hosts {
		if p.sites.hosts[name] != hosts[name] {
			p.touchHost(h)
		}
	}
	p.sites = sites{maps.Clone(routers), maps.Clone(hosts)}
}

// Weights of a site's table. Carriers have nearly all: of the others one flow in thousands begins at one at once, but what a
// carrier returns goes to them, and each other SYN of a client that nobody answers.
const (
	carriersBits = 24   // of the heaviest carrier's weight: below what a router's arithmetic takes, docs/protocol.md §3.2
	reserveSum   = 1024 // of the others' weights, about
)

// near are the targets of a port at the sites where others than the usual ones are to have its flows: carriers, and behind
// them whoever serves. A carrier that is in doubt is left out. Where nobody serves there is nothing to carry to.
func (p *Plan) near(s *service, q port, usual []resolve.Target) map[string][]resolve.Target {
	t := s.ports[q]
	if t == nil || len(usual) == 0 {
		return nil
	}
	near := make(map[string][]resolve.Target)
	for h, r := range t.instances {
		site, at := p.sites.hosts[h.name], h.place()
		if weight := s.weight(s.overrides[h.name]); r.Carries && r.fitness() == fit && site != "" && at.State == HostUp && weight > 0 {
			near[site] = append(near[site], resolve.Target{Locator: at.Locator, Weight: weight})
		}
	}
	for site, carriers := range near {
		near[site] = before(carriers, usual)
	}
	return near
}

// before puts carriers before the others, by weight, and keeps both apart in proportion.
func before(carriers, others []resolve.Target) []resolve.Target {
	var heaviest uint32
	for _, t := range carriers {
		heaviest = max(heaviest, t.Weight)
	}
	all := slices.Clone(carriers)
	for i := range all {
		all[i].Weight = uint32(uint64(all[i].Weight) << carriersBits >> bits.Len32(heaviest))
	}
	down := max(0, bits.Len64(weightOf(others)/reserveSum))
	for _, t := range others {
		if !slices.ContainsFunc(carriers, func(c resolve.Target) bool { return c.Locator == t.Locator }) {
			all = append(all, resolve.Target{Locator: t.Locator, Weight: max(1, t.Weight>>down)})
		}
	}
	slices.SortFunc(all, func(a, b resolve.Target) int { return cmp.Compare(a.Locator, b.Locator) })
	return all
}

// count follows how many tables of their own the sites' routers have.
func (p *Plan) count(before, now said) {
	for site := range before.near {
		if p.apart[site]--; p.apart[site] == 0 {
			delete(p.apart, site)
		}
	}
	for site := range now.near {
		p.apart[site]++
	}
}

// turned gives routers that came from one site to another what those there have already.
func (p *Plan) turned() map[string]*Rules {
	all := make(map[string]*Rules)
	if len(p.apart) == 0 {
		return all
	}
	for name, was := range p.dirty.sites {
		now := p.sites.routers[name]
		if r := p.routers[name]; r == nil || !r.Service || p.apart[was] == 0 && p.apart[now] == 0 {
			continue
		}
		for _, id := range slices.SortedFunc(maps.Keys(p.services), compareIDs) {
			s := p.services[id]
			for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
				if t := s.ports[q]; !slices.Equal(t.at(now), t.at(was)) {
					rulesOf(all, name).Resolutions = append(rulesOf(all, name).Resolutions, Resolution{Triple: s.triple(q), Targets: t.at(now)})
				}
			}
		}
	}
	return all
}

// carries says for people what a carrier does.
func carries(site string, i Instance) (state, reason string) {
	switch {
	case site == "":
		return "not ready", "an agent of boost serves it on this host, and is none of a site"
	case i.Effective == 0:
		return "not ready", "an agent of boost at site " + site + " serves it; nobody is there to whom it could carry"
	}
	return "serving", "for site " + site + ", by an agent of boost"
}

// A Named is a port of a service whose connections agents are to carry, and where it is served.
type Named struct {
	Triple sid.Triple
	At     []sid.Locator
}

// Named are those of all services whose policy says so.
func (p *Plan) Named() (all []Named) {
	for _, id := range slices.SortedFunc(maps.Keys(p.boosted), compareIDs) {
		s := p.services[id]
		for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
			if q.proto != sid.TCP || q.virtual() {
				continue
			}
			n := Named{Triple: s.triple(q)}
			for _, t := range p.compute(s, q) {
				n.At = append(n.At, t.Locator)
			}
			if len(n.At) > 0 {
				all = append(all, n)
			}
		}
	}
	return all
}

// EachRouter calls do with each router.
func (p *Plan) EachRouter(do func(Router)) {
	for _, name := range slices.Sorted(maps.Keys(p.routers)) {
		do(p.routers[name].Router)
	}
}
