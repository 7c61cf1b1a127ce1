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
	turned map[string]*Rules // per router: what those of its site have, where it came to another site
	leave  map[string]*Rules // per site: resolutions that lose a target
	before map[string]*Rules // per router: what new instances need
	grow   map[string]*Rules // per site: services, and resolutions that lose none
	moved  map[string]*Rules // per router: redirects to places that have their routes by now
	after  map[string]*Rules // per router: what nothing points to any more
	end    Rules             // services that are gone
}

// Drain returns what changed since the last Drain, in the order to send it in; empty when nothing did.
func (p *Plan) Drain() []Step {
	d := delta{turned: p.turned(), leave: make(map[string]*Rules), before: make(map[string]*Rules), grow: make(map[string]*Rules), moved: make(map[string]*Rules), after: make(map[string]*Rules)}
	apart := map[string]bool{"": true}
	note := func() {
		for site := range p.apart {
			apart[site] = true
		}
	}
	note()
	changes, rules := p.withdrawn(&d), []ServiceRule(nil)
	for _, id := range slices.SortedFunc(maps.Keys(p.dirty.services), compareIDs) {
		s := p.services[id]
		for _, q := range slices.SortedFunc(maps.Keys(s.dirty), comparePorts) {
			now := said{targets: p.compute(s, q)}
			now.near = p.near(s, q, now.targets)
			before := s.say(q, now)
			p.count(before, now)
			changes = append(changes, change{s.triple(q), before, now})
		}
		clear(s.dirty)
		rules = append(rules, s.rule()...)
	}
	note()
	for site := range apart {
		for _, c := range changes {
			d.resolution(site, c.triple, c.before.at(site), c.now.at(site))
		}
		rulesOf(d.grow, site).Services = rules
	}
	p.drainTopology(&d)
	p.drainRouters(&d)
	p.clean()
	return d.steps(p.resolvers(apart))
}

// A change is what the routers are told of a triple.
type change struct {
	triple      sid.Triple
	before, now said
}

// withdrawn are the tables of services that were removed.
func (p *Plan) withdrawn(d *delta) (changes []change) {
	for _, id := range slices.SortedFunc(maps.Keys(p.dirty.removed), compareIDs) {
		s := p.dirty.removed[id]
		for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
			p.count(s.ports[q].said, said{})
			changes = append(changes, change{s.triple(q), s.ports[q].said, said{}})
		}
		if s.isSaid {
			d.end.Services = append(d.end.Services, ServiceRule{Service: s.id, Gone: true})
		}
	}
	return changes
}

// resolvers are the service routers, of sites that have tables of their own by these, of all others under "".
func (p *Plan) resolvers(apart map[string]bool) map[string][]string {
	names := make(map[string][]string)
	for name, r := range p.routers {
		if !r.Service {
			continue
		}
		site := p.sites.routers[name]
		if !apart[site] {
			site = ""
		}
		names[site] = append(names[site], name)
	}
	for _, of := range names {
		slices.Sort(of)
	}
	return names
}

func (d *delta) steps(resolvers map[string][]string) []Step {
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
	all := func(m map[string]*Rules) {
		for _, site := range slices.Sorted(maps.Keys(resolvers)) {
			if m[site] != nil {
				add(resolvers[site], *m[site])
			}
		}
	}
	each(d.turned)
	all(d.leave)
	each(d.before)
	all(d.grow)
	each(d.moved)
	each(d.after)
	var every []string
	for _, of := range resolvers {
		every = append(every, of...)
	}
	slices.Sort(every)
	add(every, d.end)
	return steps
}

// say notes the targets of a port as those that the routers have, and returns those that they had.
func (s *service) say(q port, now said) (before said) {
	t := s.ports[q]
	switch {
	case t != nil:
		before, t.said = t.said, now
		if len(t.instances) == 0 && len(now.targets) == 0 {
			delete(s.ports, q)
		}
	case len(now.targets) > 0:
		s.ports[q] = &table{said: now}
	}
	return before
}

// rule says that a service is there, and how many instances it has; nothing where the routers know that.
func (s *service) rule() []ServiceRule {
	rule := ServiceRule{Service: s.id, Forbidden: s.forbidden, Instances: s.count()}
	if s.isSaid && s.said == rule {
		return nil
	}
	s.said, s.isSaid = rule, true
	return []ServiceRule{rule}
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
func (d *delta) resolution(site string, t sid.Triple, old, new []resolve.Target) {
	if slices.Equal(old, new) {
		return
	}
	stay := staying(old, new)
	if shrinks(old, new) && (len(stay) > 0 || len(new) == 0) {
		leave := rulesOf(d.leave, site)
		leave.Resolutions = append(leave.Resolutions, Resolution{Triple: t, Targets: stay})
	}
	if len(stay) < len(new) || !shrinks(old, new) {
		grow := rulesOf(d.grow, site)
		grow.Resolutions = append(grow.Resolutions, Resolution{Triple: t, Targets: new})
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
