package plan

import (
	"cmp"
	"maps"
	"slices"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// delta collects the differences of one Drain by when they may be applied.
type delta struct {
	leave  Rules             // resolutions that lose a target
	before map[string]*Rules // per router: what new instances need
	grow   Rules             // services, and resolutions that lose none
	moved  map[string]*Rules // per router: redirects to places that have their routes by now
	after  map[string]*Rules // per router: what nothing points to any more
	end    Rules             // services that are gone
}

// Drain returns what changed since the last Drain, in the order to send it in; empty when nothing did.
func (p *Plan) Drain() []Step {
	d := delta{before: make(map[string]*Rules), moved: make(map[string]*Rules), after: make(map[string]*Rules)}
	for _, id := range slices.SortedFunc(maps.Keys(p.dirty.removed), compareIDs) {
		d.removed(p.dirty.removed[id])
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.dirty.services), compareIDs) {
		s := p.services[id]
		for _, q := range slices.SortedFunc(maps.Keys(s.dirty), comparePorts) {
			targets := p.compute(s, q)
			d.resolution(s.triple(q), s.say(q, targets), targets)
		}
		clear(s.dirty)
		d.service(s)
	}
	p.drainTopology(&d)
	p.drainRouters(&d)
	p.clean()
	return d.steps(p.resolvers())
}

func (p *Plan) resolvers() []string {
	var names []string
	for name, r := range p.routers {
		if r.Service {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (d *delta) steps(resolvers []string) []Step {
	var steps []Step
	add := func(to []string, r Rules) {
		if len(to) > 0 && !r.Empty() {
			steps = append(steps, Step{Routers: to, Rules: r})
		}
	}
	each := func(m map[string]*Rules) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			add([]string{name}, *m[name])
		}
	}
	add(resolvers, d.leave)
	each(d.before)
	add(resolvers, d.grow)
	each(d.moved)
	each(d.after)
	add(resolvers, d.end)
	return steps
}

// say notes the targets of a port as those that the routers have, and returns those that they had.
func (s *service) say(q port, targets []resolve.Target) (before []resolve.Target) {
	t := s.ports[q]
	switch {
	case t != nil:
		before, t.targets = t.targets, targets
		if len(t.instances) == 0 && len(targets) == 0 {
			delete(s.ports, q)
		}
	case len(targets) > 0:
		s.ports[q] = &table{targets: targets}
	}
	return before
}

func (d *delta) removed(s *service) {
	for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
		if len(s.ports[q].targets) > 0 {
			d.leave.Resolutions = append(d.leave.Resolutions, Resolution{Triple: s.triple(q)})
		}
	}
	if s.isSaid {
		d.end.Services = append(d.end.Services, ServiceRule{Service: s.id, Gone: true})
	}
}

// service says that a service is there, and how many instances it has.
func (d *delta) service(s *service) {
	rule := ServiceRule{Service: s.id, Forbidden: s.forbidden, Instances: s.count()}
	if !s.isSaid || s.said != rule {
		s.said, s.isSaid = rule, true
		d.grow.Services = append(d.grow.Services, rule)
	}
}

// count is over the real triples: those for any port would count them twice.
func (s *service) count() (n uint32) {
	for q, t := range s.ports {
		if !q.virtual() {
			n += uint32(len(t.targets))
		}
	}
	return n
}

// resolution takes those who leave out at once and lets new ones in once the way to them stands. Where all
// change, as when the only host moves, the old ones stay until then: nobody would be refused for it.
func (d *delta) resolution(t sid.Triple, old, new []resolve.Target) {
	if slices.Equal(old, new) {
		return
	}
	stay := staying(old, new)
	if shrinks(old, new) && (len(stay) > 0 || len(new) == 0) {
		d.leave.Resolutions = append(d.leave.Resolutions, Resolution{Triple: t, Targets: stay})
	}
	if len(stay) < len(new) || !shrinks(old, new) {
		d.grow.Resolutions = append(d.grow.Resolutions, Resolution{Triple: t, Targets: new})
	}
}

func (p *Plan) drainTopology(d *delta) {
	if !p.dirty.topology {
		return
	}
	ways := p.ways()
	for name, r := range p.routers {
		set, gone := diff(r.said.ways, keyed(ways[name]), byPrefix)
		d.routes(name, set, gone)
	}
}

func (p *Plan) drainRouters(d *delta) {
	for name := range p.dirty.routers {
		r := p.routers[name]
		set, gone := diff(r.said.hosts, keyed(p.own(r)), byPrefix)
		d.routes(name, set, gone)
		probes, unprobed := diff(r.said.probes, p.probes(r), byHost)
		d.probes(name, probes, unprobed)
		redirects, over := diff(r.said.redirects, p.redirectsAt(r), byFrom)
		d.redirects(name, redirects, over, p.isPlace)
		left, back := diff(r.said.gone, p.goneAt(r), byLocator)
		d.gone(name, left, back)
		let, ended := diff(r.said.sources, p.sources(r), bySource)
		d.sources(name, let, ended)
	}
}

func rulesOf(m map[string]*Rules, name string) *Rules {
	if m[name] == nil {
		m[name] = new(Rules)
	}
	return m[name]
}

func (d *delta) routes(name string, set, gone []Route) {
	rulesOf(d.before, name).Routes = append(rulesOf(d.before, name).Routes, set...)
	for _, r := range gone {
		rulesOf(d.after, name).Routes = append(rulesOf(d.after, name).Routes, Route{Prefix: r.Prefix, Gone: true})
	}
}

func (d *delta) probes(name string, set, gone []Probe) {
	rulesOf(d.before, name).Probes = append(rulesOf(d.before, name).Probes, set...)
	for _, r := range gone {
		r.Gone = true
		rulesOf(d.after, name).Probes = append(rulesOf(d.after, name).Probes, r)
	}
}

// sources lets in before anybody sends, and shuts out when nobody does any more.
func (d *delta) sources(name string, set, gone []Source) {
	rulesOf(d.before, name).Sources = append(rulesOf(d.before, name).Sources, set...)
	for _, s := range gone {
		s.Gone = true
		rulesOf(d.after, name).Sources = append(rulesOf(d.after, name).Sources, s)
	}
}

// redirects ends those first whose locator somebody has again: they would lead packets away from it.
func (d *delta) redirects(name string, set, gone []Redirect, used func(sid.Locator) bool) {
	rulesOf(d.moved, name).Redirects = append(rulesOf(d.moved, name).Redirects, set...)
	for _, r := range gone {
		when := d.after
		if used(r.From) {
			when = d.before
		}
		r.Gone = true
		rulesOf(when, name).Redirects = append(rulesOf(when, name).Redirects, r)
	}
}

func (d *delta) gone(name string, set, back []Gone) {
	rulesOf(d.after, name).Gone = append(rulesOf(d.after, name).Gone, set...)
	for _, g := range back {
		g.Back = true
		rulesOf(d.before, name).Gone = append(rulesOf(d.before, name).Gone, g)
	}
}

func compareIDs(a, b sid.ServiceID) int {
	return cmp.Or(cmp.Compare(a.SS, b.SS), cmp.Compare(a.Suffix, b.Suffix))
}

func comparePorts(a, b port) int {
	return cmp.Or(cmp.Compare(a.proto, b.proto), cmp.Compare(a.port, b.port))
}
