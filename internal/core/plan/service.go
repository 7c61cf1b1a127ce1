package plan

import (
	"cmp"
	"slices"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// DefaultWeight is the weight of an instance that nobody gave one.
const DefaultWeight = 100

// An Override is what an operator said of one host of one service. The controller stores it as it is: names of fields stay.
type Override struct {
	Weight uint32 `json:"weight"`
	Set    bool   `json:"set"` // Weight counts, 0 too
	Drain  bool   `json:"drain"`
}

// Readiness is what the host says of an instance. The controller stores it, but for the reason: names of fields stay.
type Readiness struct {
	Ready  bool   `json:"ready,omitempty"`
	Queue  bool   `json:"queue,omitempty"`  // not ready, but only because its accept queue does not move
	Slow   bool   `json:"slow,omitempty"`   // of Queue, or of the listeners that do not work: its program runs, and may be overloaded
	Resume bool   `json:"resume,omitempty"` // can go on with flows of other instances
	Reason string `json:"-"`                // why not
	// Carries: an agent of boost serves it, who brings connections to those who do.
	Carries bool `json:"carries,omitempty"`

	// Working of the Listeners of one that is ready accept; 0 Listeners: all do.
	Working   uint32 `json:"working,omitempty"`
	Listeners uint32 `json:"listeners,omitempty"`
}

// port is a triple inside its service.
type port struct {
	proto sid.Proto
	port  uint16
}

// Some tables of a service are of ports that no instance registers: of any protocol, for ping; of UDP, for
// fragments, which have no ports; and that of unresolved RSYNs, which has the instances that can resume
// flows, docs/protocol.md §6.5.
var (
	ping      = port{}
	datagrams = port{proto: sid.UDP}
	resuming  = port{proto: sid.UDP, port: sid.Port}
)

// virtual reports whether the table is made of others'.
func (p port) virtual() bool { return p.port == 0 || p == resuming }

// covers reports whether the table of p has the instances of q that say so.
func (p port) covers(q port, r Readiness) bool {
	switch {
	case q.virtual() || r.Carries:
		return false
	case p == resuming:
		return r.Resume
	}
	return p == q || p.port == 0 && (p.proto == 0 || p.proto == q.proto)
}

type service struct {
	id        sid.ServiceID
	all       uint32 // weight of hosts that nobody gave one; 0 means DefaultWeight
	forbidden bool   // nobody may connect
	overrides map[string]Override
	ports     map[port]*table
	dirty     map[port]struct{}
	said      ServiceRule // as the routers have it
	isSaid    bool
}

// A table is a triple: who registered it, and what the routers have.
type table struct {
	instances map[*host]Readiness
	said
}

// said are the targets of a triple: those that routers have, and those that the routers of some sites have instead.
type said struct {
	targets []resolve.Target
	near    map[string][]resolve.Target
}

// at is what routers of a site have; "": those of none.
func (s said) at(site string) []resolve.Target {
	if t, ok := s.near[site]; ok {
		return t
	}
	return s.targets
}

// weight is that of a host of which the operator said o.
func (s *service) weight(o Override) uint32 {
	switch {
	case o.Drain:
		return 0
	case o.Set:
		return o.Weight
	case s.all != 0:
		return s.all
	}
	return DefaultWeight
}

// touch marks a port and the tables that cover it.
func (s *service) touch(p port) {
	s.dirty[p], s.dirty[ping], s.dirty[resuming] = struct{}{}, struct{}{}, struct{}{}
	if p.proto == datagrams.proto {
		s.dirty[datagrams] = struct{}{}
	}
}

func (s *service) touchAll() {
	for p := range s.ports {
		s.touch(p)
	}
	s.touch(ping)
}

func (s *service) triple(p port) sid.Triple {
	return sid.Triple{Service: s.id, Proto: p.proto, Port: p.port}
}

// A fitness is how well a host serves.
type fitness uint8

const (
	_       fitness = iota
	stopped         // its program does not accept
	slow            // nor does this one, but it runs
	fit
)

func (r Readiness) fitness() fitness {
	switch {
	case r.Ready:
		return fit
	case r.Queue && r.Slow:
		return slow
	case r.Queue:
		return stopped
	}
	return 0
}

// partly reports whether some listeners of an instance do not work.
func (r Readiness) partly() bool {
	return r.Ready && 0 < r.Working && r.Working < r.Listeners
}

// share is what remains of a weight, by the listeners that work: never nothing, for some do.
func (r Readiness) share(weight uint32) uint32 {
	working, all := r.fraction()
	return uint32(max(min(1, uint64(weight)), (uint64(weight)*working+all/2)/all))
}

// better compares how well instances of a host serve: by whether they do, then by their listeners that work, then by why
// the others do not.
func better(a, b Readiness) bool {
	if c := cmp.Or(cmp.Compare(a.fitness(), b.fitness()), compareShares(a, b)); c != 0 {
		return c > 0
	}
	return a.Slow && !b.Slow
}

func compareShares(a, b Readiness) int {
	aw, al := a.fraction()
	bw, bl := b.fraction()
	return cmp.Compare(aw*bl, bw*al)
}

// fraction of an instance that works.
func (r Readiness) fraction() (working, listeners uint64) {
	if !r.partly() {
		return 1, 1
	}
	return uint64(r.Working), uint64(r.Listeners)
}

// servesAt is who serves p, and how well; of a table that is made of others whoever serves one, by its best.
func (s *service) servesAt(p port) map[*host]Readiness {
	hosts := make(map[*host]Readiness)
	for q, t := range s.ports {
		for h, r := range t.instances {
			if best, ok := hosts[h]; p.covers(q, r) && r.fitness() > 0 && (!ok || better(r, best)) {
				hosts[h] = r
			}
		}
	}
	return hosts
}

// compute weighs the instances of p, each by its listeners that work. The doubtful serve only where no other could: hosts
// that answer no probe, and programs that do not accept. If every probe of a service's hosts fails at once, the
// probes are the more likely culprit; a program that takes its time for each request is slow, not dead;
// and sending flows to nobody would not help either (fail static). Who is gone never serves.
//
// Nor is taken away what is slow where that is most of the service, by weight: what the rest gets then would drive it over,
// too (Envoy's panic threshold, with the same half).
func (p *Plan) compute(s *service, q port) []resolve.Target {
	var up, late, doubtful []resolve.Target
	var whole []resolve.Target // of those that are up, with what only slow listeners take from them
	for h, how := range s.servesAt(q) {
		at := h.place()
		weight := s.weight(s.overrides[h.name])
		t := resolve.Target{Locator: at.Locator, Weight: how.share(weight)}
		switch {
		case t.Weight == 0 || at.State == HostGone:
		case at.State == HostSuspect || how.fitness() == stopped:
			t.Locator = h.best().Locator
			doubtful = append(doubtful, t)
		case how.fitness() == slow:
			late = append(late, t)
		default:
			up = append(up, t)
			if how.Slow {
				t.Weight = weight
			}
			whole = append(whole, t)
		}
	}
	if weightOf(whole)+weightOf(late) > 2*weightOf(up) {
		up = append(whole, late...)
	}
	if len(up) == 0 {
		up = doubtful
	}
	slices.SortFunc(up, func(a, b resolve.Target) int { return cmp.Compare(a.Locator, b.Locator) })
	return up
}

func weightOf(targets []resolve.Target) (sum uint64) {
	for _, t := range targets {
		sum += uint64(t.Weight)
	}
	return sum
}

// staying is what of the new targets the old table has already. Others must wait for the way to them.
func staying(old, new []resolve.Target) []resolve.Target {
	var both []resolve.Target
	for _, t := range new {
		if holds(old, t.Locator) {
			both = append(both, t)
		}
	}
	return both
}

// shrinks reports whether an old target is not among the new ones: such a change goes out first.
func shrinks(old, new []resolve.Target) bool {
	return slices.ContainsFunc(old, func(t resolve.Target) bool { return !holds(new, t.Locator) })
}

func holds(list []resolve.Target, l sid.Locator) bool {
	_, ok := slices.BinarySearchFunc(list, l, func(t resolve.Target, l sid.Locator) int { return cmp.Compare(t.Locator, l) })
	return ok
}
