package plan

import (
	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
)

// checkTargets holds every target against the rules of weights, told from the world's side.
func (m *machine) checkTargets(t *rapid.T, router string) {
	if !m.world.routers[router].Service {
		return
	}
	mirror := m.mirrors[router]
	for triple, targets := range mirror.resolutions {
		for _, target := range targets {
			h := m.world.hosts[target.Locator]
			switch w, ready := m.world.weight(triple.Service, h.Name), m.world.ready(target.Locator, triple); {
			case target.Weight != w || w == 0:
				t.Fatalf("%v: %s has weight %d, its state says %d", triple, h.Name, target.Weight, w)
			case !ready && !m.world.queue(target.Locator, triple):
				t.Fatalf("%v: %s is not ready and is a target", triple, h.Name)
			case !ready && m.world.anyUp(triple):
				t.Fatalf("%v: %s does not accept and is a target beside one that is up", triple, h.Name)
			case h.State == HostGone:
				t.Fatalf("%v: %s is gone and is a target", triple, h.Name)
			case h.State == HostSuspect && m.world.anyUp(triple):
				t.Fatalf("%v: %s is suspect and a target beside one that is up", triple, h.Name)
			}
		}
	}
	for r := range m.world.regs {
		for _, triple := range []sid.Triple{r.triple, {Service: r.triple.Service}, {Service: r.triple.Service, Proto: sid.UDP}} {
			if m.world.anyCould(triple) && len(mirror.resolutions[triple]) == 0 {
				t.Fatalf("%v: somebody could serve, and nobody is a target", triple)
			}
		}
	}
}

func (w *world) weight(id sid.ServiceID, host string) uint32 {
	o, ok := w.overrides[override{id, host}]
	switch {
	case ok && o.Drain:
		return 0
	case ok && o.Set:
		return o.Weight
	case w.services[id].Weight == 0:
		return 100
	}
	return w.services[id].Weight
}

// matches says whether the table of t has the instance of u: port 0 stands for all, of UDP or, with
// protocol 0, of all protocols.
func matches(t, u sid.Triple) bool {
	return t == u || t.Service == u.Service && t.Port == 0 && (t.Proto == 0 || t.Proto == u.Proto)
}

// ready is for any port whether one of the service is ready there.
func (w *world) ready(l sid.Locator, t sid.Triple) bool {
	for r, ready := range w.regs {
		if r.at == l && r.triple.Service == t.Service && matches(t, r.triple) && ready.Ready {
			return true
		}
	}
	return false
}

// queue reports whether an instance is held back by nothing but its accept queue.
func (w *world) queue(l sid.Locator, t sid.Triple) bool {
	for r, ready := range w.regs {
		if r.at == l && r.triple.Service == t.Service && matches(t, r.triple) && ready.Queue {
			return true
		}
	}
	return false
}

// anyCould reports whether somebody serves or might: who is not gone and not known to be unready.
func (w *world) anyCould(t sid.Triple) bool {
	for l, h := range w.hosts {
		if h.State != HostGone && w.weight(t.Service, h.Name) > 0 && (w.ready(l, t) || w.queue(l, t)) {
			return true
		}
	}
	return false
}

func (w *world) anyUp(t sid.Triple) bool {
	for l, h := range w.hosts {
		if h.State == HostUp && w.weight(t.Service, h.Name) > 0 && w.ready(l, t) {
			return true
		}
	}
	return false
}

// checkPaths walks from every router to every host and every service as packets would: it must
// arrive where there is a chain of usable links, and never walk in a circle.
func (m *machine) checkPaths(t *rapid.T) {
	for from := range m.world.routers {
		reach := m.world.reach(from)
		for l, h := range m.world.hosts {
			_, known := m.world.routers[h.Router]
			if end, ok := m.walk(t, from, l); known && reach[h.Router] && (!ok || end != h.Router) {
				t.Fatalf("from %s to %s at %s: ends at %s", from, h.Name, h.Router, end)
			}
		}
		for to := range reach {
			if !m.world.routers[to].Service {
				continue
			}
			if end, ok := m.walkService(t, from); !ok {
				t.Fatalf("from %s a service router is in reach (%s), and the way ends at %s", from, to, end)
			}
			break
		}
	}
}

// walk follows the blocks; ok is false where a router has no route.
func (m *machine) walk(t *rapid.T, at string, l sid.Locator) (end string, ok bool) {
	for range nRouters + 1 {
		if r := m.world.routers[at]; r.Block().Contains(l.Addr(0)) {
			_, ok := m.mirrors[at].routes[l.Prefix()]
			return at, ok
		}
		next, ok := m.hop(at, func(r Route) bool { return r.Prefix.Bits() == BlockBits && r.Prefix.Contains(l.Addr(0)) })
		if !ok {
			return at, false
		}
		at = next
	}
	t.Fatalf("a loop on the way to %v", l)
	return "", false
}

func (m *machine) walkService(t *rapid.T, at string) (end string, ok bool) {
	for range nRouters + 1 {
		if m.world.routers[at].Service {
			return at, true
		}
		next, ok := m.hop(at, func(r Route) bool { return r.Prefix == sid.DefaultSpace().Services })
		if !ok {
			return at, false
		}
		at = next
	}
	t.Fatalf("a loop on the way to a service router")
	return "", false
}

// hop finds the router behind the route's port.
func (m *machine) hop(at string, is func(Route) bool) (string, bool) {
	for _, r := range m.mirrors[at].routes {
		if !is(r) {
			continue
		}
		for _, l := range m.world.links[at] {
			if l.Port == r.Port && l.Via == r.Via {
				return l.Peer, true
			}
		}
	}
	return "", false
}

// reach is where packets can get from a router over links that neither end calls down.
func (w *world) reach(from string) map[string]bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		for _, l := range w.links[at] {
			if _, ok := w.routers[l.Peer]; ok && !seen[l.Peer] && w.usable(at, l) {
				seen[l.Peer] = true
				todo = append(todo, l.Peer)
			}
		}
	}
	return seen
}

func (w *world) usable(at string, l Link) bool {
	said := false
	for _, back := range w.links[l.Peer] {
		if back.Peer == at {
			said = true
			if back.State != LinkDown && l.State != LinkDown {
				return true
			}
		}
	}
	return !said && l.State != LinkDown
}
