package plan

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

const (
	nRouters  = 6
	nHosts    = 8
	nPlaces   = 12 // place i is of host i % nHosts: some have two
	nServices = 4
)

// A machine drives a plan, the world beside it, and one mirror per router.
type machine struct {
	world   *world
	plan    *Plan
	mirrors map[string]*mirror
}

func routerName(i int) string { return fmt.Sprintf("r%d", i) }
func locator(i int) sid.Locator {
	return sid.DefaultSpace().Locator(uint16(i%nRouters+1)<<8 | uint16(i+1))
}
func hostName(i int) string        { return fmt.Sprintf("h%d", i) }
func serviceN(i int) sid.ServiceID { return sid.ServiceID{SS: 1, Suffix: sid.Suffix(0x10000 + i)} }

func linkLocal(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fe80::%x", n)) }

func (m *machine) router(t *rapid.T) {
	i := rapid.IntRange(0, nRouters-1).Draw(t, "router")
	r := Router{Name: routerName(i), Service: rapid.Bool().Draw(t, "resolves"), Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)}
	if old, ok := m.world.routers[r.Name]; ok {
		r.Service = old.Service // what a router is, it is for life; a new role comes with a new stream
	}
	m.world.routers[r.Name] = r
	if m.mirrors[r.Name] == nil {
		m.plan.SetRouter(r)
		m.plan.Drain()
		m.mirrors[r.Name] = snapshot(m.plan, r.Name)
		m.resync()
		return
	}
	m.plan.SetRouter(r)
}

// resync stands for what Drain inside router swallowed.
func (m *machine) resync() {
	for name := range m.mirrors {
		m.mirrors[name] = snapshot(m.plan, name)
	}
}

func (m *machine) dropRouter(t *rapid.T) {
	name := routerName(rapid.IntRange(0, nRouters-1).Draw(t, "router"))
	m.plan.RemoveRouter(name)
	delete(m.world.routers, name)
	delete(m.world.links, name)
	delete(m.mirrors, name)
}

func (m *machine) links(t *rapid.T) {
	i := rapid.IntRange(0, nRouters-1).Draw(t, "router")
	if _, ok := m.world.routers[routerName(i)]; !ok {
		return
	}
	var links []Link
	for n := range rapid.IntRange(0, 4).Draw(t, "links") {
		peer := rapid.IntRange(0, nRouters-1).Draw(t, "peer")
		links = append(links, Link{
			Port: fmt.Sprintf("p%d", n), Peer: routerName(peer), Via: linkLocal(peer + 1),
			State: LinkState(rapid.IntRange(0, 2).Draw(t, "state")), Cost: rapid.Uint32Range(0, 3).Draw(t, "cost"),
		})
	}
	m.world.links[routerName(i)] = links
	m.plan.SetLinks(routerName(i), links)
}

func (m *machine) host(t *rapid.T) {
	i := rapid.IntRange(0, nPlaces-1).Draw(t, "place")
	h := Host{
		Name: hostName(i % nHosts), Locator: locator(i), Router: routerName(i % nRouters), Port: rapid.SampledFrom([]string{"e0", "e1"}).Draw(t, "port"),
		LinkLocal: linkLocal(0x100 + i), State: HostState(rapid.IntRange(0, 2).Draw(t, "state")),
	}
	if len(m.world.places(h.Name)) == 0 {
		m.world.prefers[h.Name] = h.Locator
	}
	m.world.hosts[h.Locator] = h
	m.plan.SetHost(h)
}

func (m *machine) dropHost(t *rapid.T) {
	l := locator(rapid.IntRange(0, nPlaces-1).Draw(t, "place"))
	name := m.world.hosts[l].Name
	m.plan.RemoveHost(l)
	delete(m.world.hosts, l)
	switch rest := m.world.places(name); {
	case len(rest) == 0:
		delete(m.world.prefers, name)
		m.forget(func(r reg) bool { return r.host == name })
	case m.world.prefers[name] == l:
		m.world.prefers[name] = rest[0].Locator
	}
}

func (m *machine) prefer(t *rapid.T) {
	l := locator(rapid.IntRange(0, nPlaces-1).Draw(t, "place"))
	h, ok := m.world.hosts[l]
	if m.plan.Prefer(l) != ok {
		t.Fatalf("Prefer(%v) disagrees on whether a host is there", l)
	}
	if ok {
		m.world.prefers[h.Name] = l
	}
}

// redirect leads from a place, or back from it.
func (m *machine) redirect(t *rapid.T) {
	from := locator(rapid.IntRange(0, nPlaces-1).Draw(t, "from"))
	to := locator(rapid.IntRange(0, nPlaces-1).Draw(t, "to"))
	if rapid.IntRange(0, 3).Draw(t, "over") == 0 {
		to = 0
	}
	m.world.redirects[from] = to
	if to == 0 {
		delete(m.world.redirects, from)
	}
	m.plan.SetRedirect(from, to)
}

func (m *machine) leave(t *rapid.T) {
	l, left := locator(rapid.IntRange(0, nPlaces-1).Draw(t, "place")), rapid.Bool().Draw(t, "left")
	m.world.left[l] = left
	if !left {
		delete(m.world.left, l)
	}
	m.plan.SetLeft(l, left)
}

func (m *machine) forget(gone func(reg) bool) {
	for r := range m.world.regs {
		if gone(r) {
			delete(m.world.regs, r)
		}
	}
}

func (m *machine) state(t *rapid.T) {
	l := locator(rapid.IntRange(0, nPlaces-1).Draw(t, "place"))
	s := HostState(rapid.IntRange(0, 2).Draw(t, "state"))
	if h, ok := m.world.hosts[l]; ok != m.plan.SetHostState(l, s) {
		t.Fatalf("SetHostState(%v) disagrees on whether the host exists", l)
	} else if ok {
		h.State = s
		m.world.hosts[l] = h
	}
}

func (m *machine) service(t *rapid.T) {
	id := serviceN(rapid.IntRange(0, nServices-1).Draw(t, "service"))
	m.world.services[id] = names.Record{ID: id, Policy: names.Policy{Weight: rapid.SampledFrom([]uint32{0, 1, 7}).Draw(t, "weight")}}
	m.plan.SetService(m.world.services[id])
}

func (m *machine) dropService(t *rapid.T) {
	id := serviceN(rapid.IntRange(0, nServices-1).Draw(t, "service"))
	m.plan.RemoveService(id)
	delete(m.world.services, id)
	m.forget(func(r reg) bool { return r.triple.Service == id })
	for k := range m.world.overrides {
		if k.service == id {
			delete(m.world.overrides, k)
		}
	}
}

func (m *machine) override(t *rapid.T) {
	k := override{serviceN(rapid.IntRange(0, nServices-1).Draw(t, "service")), hostName(rapid.IntRange(0, nHosts-1).Draw(t, "host"))}
	if _, ok := m.world.services[k.service]; !ok {
		return
	}
	o := Override{Weight: rapid.Uint32Range(0, 2).Draw(t, "weight"), Set: true, Drain: rapid.Bool().Draw(t, "drain")}
	m.world.overrides[k] = o
	m.plan.SetOverride(k.service, k.host, o)
}

func drawReg(t *rapid.T) reg {
	return reg{hostName(rapid.IntRange(0, nHosts-1).Draw(t, "host")), sid.Triple{
		Service: serviceN(rapid.IntRange(0, nServices-1).Draw(t, "service")),
		Proto:   sid.TCP, Port: rapid.SampledFrom([]uint16{80, 443}).Draw(t, "port"),
	}}
}

func (m *machine) register(t *rapid.T) {
	r, ready := drawReg(t), rapid.SampledFrom([]Readiness{{Ready: true}, {Ready: true, Resume: true}, {}, {Queue: true}, {Queue: true, Slow: true},
		{Ready: true, Working: 1, Listeners: 4}, {Ready: true, Slow: true, Working: 1, Listeners: 4}}).Draw(t, "ready")
	host := len(m.world.places(r.host)) > 0
	_, service := m.world.services[r.triple.Service]
	if err := m.plan.Register(r.host, r.triple, ready); (err == nil) != (host && service) {
		t.Fatalf("Register: %v with host %v, service %v", err, host, service)
	} else if err == nil {
		m.world.regs[r] = ready
	}
}

func (m *machine) withdraw(t *rapid.T) {
	r := drawReg(t)
	m.plan.Withdraw(r.host, r.triple)
	delete(m.world.regs, r)
}

// drain applies what follows, and looks at each step whether it may come so early: nobody is sent to a
// place without a route, those who leave do so first, and no redirect leads away from where a host is.
func (m *machine) drain(t *rapid.T) {
	leaving := true
	for _, step := range m.plan.Drain() {
		leaving = leaving && m.onlyLeaves(step)
		if !leaving && m.leaves(step) && !m.moves(step) {
			t.Fatalf("a withdrawal waits behind something else: %+v", step)
		}
		m.checkWays(t, step)
		for _, name := range step.Routers {
			m.mirrors[name].apply(step.Rules)
		}
	}
}

// leaves reports whether the step takes a target away.
func (m *machine) leaves(s Step) bool {
	return slices.ContainsFunc(s.Rules.Resolutions, func(r Resolution) bool {
		return shrinks(m.mirrors[s.Routers[0]].resolutions[r.Triple], r.Targets)
	})
}

// moves reports whether each table of the step that loses a target loses all of them for others.
func (m *machine) moves(s Step) bool {
	return !slices.ContainsFunc(s.Rules.Resolutions, func(r Resolution) bool {
		old := m.mirrors[s.Routers[0]].resolutions[r.Triple]
		return shrinks(old, r.Targets) && (len(r.Targets) == 0 || len(staying(old, r.Targets)) > 0)
	})
}

func (m *machine) onlyLeaves(s Step) bool {
	return len(s.Rules.Routes)+len(s.Rules.Services)+len(s.Rules.Probes)+len(s.Rules.Redirects)+len(s.Rules.Gone) == 0 && m.leaves(s)
}

// checkWays looks for the routes of what a step sends packets to.
func (m *machine) checkWays(t *rapid.T, s Step) {
	var to []sid.Locator
	for _, r := range s.Rules.Resolutions {
		for _, target := range r.Targets {
			to = append(to, target.Locator)
		}
	}
	for _, r := range s.Rules.Redirects {
		if !r.Gone {
			to = append(to, r.To)
		}
	}
	for _, l := range to {
		h, ok := m.world.hosts[l]
		if first := m.mirrors[h.Router]; ok && first != nil && !has(first, l) {
			t.Fatalf("packets are sent to %v before its router %s has the route", l, h.Router)
		}
	}
}

func has(m *mirror, l sid.Locator) bool { _, ok := m.routes[l.Prefix()]; return ok }

// check is called after every action; most look at the state only once it is drained.
func (m *machine) check(t *rapid.T) {
	m.drain(t)
	scratch := m.world.scratch(rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "order"))))
	for name := range m.world.routers {
		told, kept, fresh := m.mirrors[name].String(), snapshot(m.plan, name).String(), snapshot(scratch, name).String()
		if told != kept {
			t.Fatalf("%s: deltas lead to\n%s\nthe snapshot says\n%s", name, told, kept)
		}
		if kept != fresh {
			t.Fatalf("%s: step by step the rules are\n%s\nfrom scratch\n%s", name, kept, fresh)
		}
		m.checkTargets(t, name)
	}
	m.checkPaths(t)
	m.checkLeft(t)
}

func TestAnyHistoryGivesTheRulesOfItsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{newWorld(), New(sid.DefaultSpace()), map[string]*mirror{}}
		t.Repeat(map[string]func(*rapid.T){
			"router": m.router, "drop router": m.dropRouter, "links": m.links,
			"host": m.host, "drop host": m.dropHost, "state": m.state, "prefer": m.prefer,
			"redirect": m.redirect, "leave": m.leave,
			"service": m.service, "drop service": m.dropService, "override": m.override,
			"register": m.register, "register more": m.register, "withdraw": m.withdraw,
			"": m.check,
		})
	})
}

// Several changes between two Drains must end in the same place as one by one.
func TestBatchesEndWhereSingleChangesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{newWorld(), New(sid.DefaultSpace()), map[string]*mirror{}}
		t.Repeat(map[string]func(*rapid.T){
			"router": m.router, "links": m.links, "host": m.host, "drop host": m.dropHost, "state": m.state, "prefer": m.prefer,
			"redirect": m.redirect, "leave": m.leave,
			"service": m.service, "drop service": m.dropService, "override": m.override,
			"register": m.register, "register more": m.register, "withdraw": m.withdraw, "drain": m.check,
		})
	})
}

// Dense topologies at once: step by step they are rarely reached.
func TestPathsArriveWithoutLoopsInAnyTopology(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{newWorld(), New(sid.DefaultSpace()), map[string]*mirror{}}
		for i := range nRouters {
			r := Router{Name: routerName(i), Service: i == 0, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)}
			m.world.routers[r.Name], m.mirrors[r.Name] = r, newMirror()
			m.plan.SetRouter(r)
		}
		for range 2 * nRouters {
			m.pair(t)
		}
		for range nPlaces {
			m.host(t)
		}
		m.check(t)
	})
}

// pair adds a link that both ends report, each at a cost of its own.
func (m *machine) pair(t *rapid.T) {
	a, b := rapid.IntRange(0, nRouters-1).Draw(t, "a"), rapid.IntRange(0, nRouters-1).Draw(t, "b")
	for _, end := range [][2]int{{a, b}, {b, a}} {
		name := routerName(end[0])
		links := append(slices.Clone(m.world.links[name]), Link{
			Port: fmt.Sprintf("p%d-%d", end[1], len(m.world.links[name])), Peer: routerName(end[1]), Via: linkLocal(end[1] + 1),
			State: LinkState(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "state")), Cost: rapid.Uint32Range(1, 3).Draw(t, "cost"),
		})
		m.world.links[name] = links
		m.plan.SetLinks(name, links)
	}
}
