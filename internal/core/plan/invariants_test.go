package plan

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
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
			switch w, ready := m.world.weight(triple.Service, h.Name), m.world.ready(h.Name, triple); {
			case w == 0 || target.Weight != m.world.share(triple, h.Name):
				t.Fatalf("%v: %s has weight %d, its state says %d of %d", triple, h.Name, target.Weight, m.world.share(triple, h.Name), w)
			case !ready && !m.world.queue(h.Name, triple):
				t.Fatalf("%v: %s is not ready and is a target", triple, h.Name)
			case !ready && m.world.anyUp(triple) && !(m.world.slow(h.Name, triple) && m.world.mostAreSlow(triple)):
				t.Fatalf("%v: %s does not accept and is a target beside one that is up", triple, h.Name)
			case h.State == HostGone:
				t.Fatalf("%v: %s is gone at %v and is a target there", triple, h.Name, target.Locator)
			case h.State == HostSuspect && m.world.anyUp(triple):
				t.Fatalf("%v: %s is suspect at %v and a target beside one that is up", triple, h.Name, target.Locator)
			case h.State == HostUp && ready && target.Locator != m.world.prefers[h.Name] && m.world.hosts[m.world.prefers[h.Name]].State == HostUp:
				t.Fatalf("%v: %s prefers %v, which is up, and is a target at %v", triple, h.Name, m.world.prefers[h.Name], target.Locator)
			}
		}
	}
	for r := range m.world.regs {
		for _, triple := range []sid.Triple{r.triple, {Service: r.triple.Service}, {Service: r.triple.Service, Proto: sid.UDP}, capable(r.triple.Service)} {
			if m.world.anyCould(triple) && len(mirror.resolutions[triple]) == 0 {
				t.Fatalf("%v: somebody could serve, and nobody is a target", triple)
			}
		}
	}
}

// capable is what unresolved RSYNs for a service ask for.
func capable(id sid.ServiceID) sid.Triple {
	return sid.Triple{Service: id, Proto: sid.UDP, Port: sid.Port}
}

// places are those of a host, by locator.
func (w *world) places(name string) (list []Host) {
	for _, h := range w.hosts {
		if h.Name == name {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b Host) int { return cmp.Compare(a.Locator, b.Locator) })
	return list
}

// life is the state of the place that counts: the preferred one, or the best where that is gone.
func (w *world) life(name string) HostState {
	s := w.hosts[w.prefers[name]].State
	if s == HostGone {
		for _, h := range w.places(name) {
			s = min(s, h.State)
		}
	}
	return s
}

func (w *world) weight(id sid.ServiceID, host string) uint32 {
	o, ok := w.overrides[override{id, host}]
	switch {
	case ok && o.Drain:
		return 0
	case ok && o.Set:
		return o.Weight
	case w.services[id].Policy.Weight == 0:
		return 100
	}
	return w.services[id].Policy.Weight
}

// matches says whether the table of t has the instance of u: port 0 stands for all, of UDP or, with
// protocol 0, of all protocols; the messages' port for those that can resume.
func matches(t, u sid.Triple, r Readiness) bool {
	if t == capable(u.Service) {
		return r.Resume
	}
	return t == u || t.Service == u.Service && t.Port == 0 && (t.Proto == 0 || t.Proto == u.Proto)
}

// ready is for any port whether one of the service is ready there.
func (w *world) ready(host string, t sid.Triple) bool {
	for r, ready := range w.regs {
		if r.host == host && matches(t, r.triple, ready) && ready.Ready {
			return true
		}
	}
	return false
}

// queue reports whether an instance is held back by nothing but its accept queue.
func (w *world) queue(host string, t sid.Triple) bool {
	for r, ready := range w.regs {
		if r.host == host && matches(t, r.triple, ready) && ready.Queue {
			return true
		}
	}
	return false
}

// slow reports whether of what a host serves something is slow.
func (w *world) slow(host string, t sid.Triple) bool {
	for r, ready := range w.regs {
		if r.host == host && matches(t, r.triple, ready) && ready.Queue && ready.Slow {
			return true
		}
	}
	return false
}

// quarter is what of a host works by the best of what it serves: a quarter, of which only slowness takes the rest, or all.
func (w *world) quarter(host string, t sid.Triple) (quarter, slow bool) {
	for r, ready := range w.regs {
		if r.host != host || !matches(t, r.triple, ready) || !ready.Ready {
			continue
		}
		if ready.Listeners == 0 {
			return false, false
		}
		quarter, slow = true, slow || ready.Slow
	}
	return quarter, slow
}

// share is the weight of a target.
func (w *world) share(t sid.Triple, host string) uint32 {
	weight := w.weight(t.Service, host)
	quarter, slow := w.quarter(host, t)
	if !quarter || weight == 0 || slow && w.life(host) == HostUp && w.mostAreSlow(t) {
		return weight
	}
	return max(1, (weight+2)/4)
}

// mostAreSlow reports whether slowness would take more weight away, of hosts and of parts of them, than remains.
func (w *world) mostAreSlow(t sid.Triple) bool {
	var taken, left uint64
	for name := range w.prefers {
		weight := uint64(w.weight(t.Service, name))
		switch quarter, slow := w.quarter(name, t); {
		case w.life(name) != HostUp || weight == 0:
		case w.ready(name, t) && quarter:
			part := max(1, (weight+2)/4)
			if left += part; slow {
				taken += weight - part
			}
		case w.ready(name, t):
			left += weight
		case w.slow(name, t):
			taken += weight
		}
	}
	return taken > left
}

// anyCould reports whether somebody serves or might: who is not gone and not known to be unready.
func (w *world) anyCould(t sid.Triple) bool {
	for name := range w.prefers {
		if w.life(name) != HostGone && w.weight(t.Service, name) > 0 && (w.ready(name, t) || w.queue(name, t)) {
			return true
		}
	}
	return false
}

func (w *world) anyUp(t sid.Triple) bool {
	for name := range w.prefers {
		if w.life(name) == HostUp && w.weight(t.Service, name) > 0 && w.ready(name, t) {
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

// checkLeft follows packets to every locator: they arrive where a host is, never go round, and where nobody
// is and nobody went on, the sender is told where the network knows.
func (m *machine) checkLeft(t *rapid.T) {
	for i := range nPlaces {
		l := locator(i)
		owner := m.mirrors[routerName(i%nRouters)]
		if owner == nil {
			continue
		}
		_, here := m.world.hosts[l]
		on, redirected := owner.redirects[l]
		_, gone := owner.gone[l]
		_, follows := m.world.hosts[on.To]
		end := m.world.end(l)
		switch {
		case here && (redirected || gone):
			t.Fatalf("a host is at %v, and its router sends on: %v, says gone: %v", l, redirected, gone)
		case redirected && (!follows || on.To != end):
			t.Fatalf("%v leads to %v, where a host is: %v; the redirects end at %v", l, on.To, follows, end)
		case !here && !redirected && end != 0:
			t.Fatalf("%v was left for %v, and nobody is told", l, end)
		case !here && gone != (m.world.left[l] && m.world.redirects[l] == 0):
			t.Fatalf("%v was left: %v, has a redirect to %v, and is told as gone: %v", l, m.world.left[l], m.world.redirects[l], gone)
		}
	}
}

// end is where redirects lead from l to a host, 0 where they do not.
func (w *world) end(l sid.Locator) sid.Locator {
	for range nPlaces {
		if l = w.redirects[l]; l == 0 {
			return 0
		}
		if _, ok := w.hosts[l]; ok {
			return l
		}
	}
	return 0
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
	return l.State != LinkDown && slices.ContainsFunc(w.links[l.Peer], func(back Link) bool {
		return back.Peer == at && back.State != LinkDown
	})
}
