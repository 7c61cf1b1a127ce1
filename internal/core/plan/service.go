package plan

import (
	"cmp"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// DefaultWeight is the weight of an instance that nobody gave one.
const DefaultWeight = 100

// MaxWeight is the greatest weight that the routers' tables hold.
const MaxWeight = 65535

// Policy is what of a service's policy decides about rules.
type Policy struct {
	Weight    uint32 // of hosts that nobody gave one; 0 means DefaultWeight
	Forbidden bool
}

// An Override is what an operator said of one host of one service.
type Override struct {
	Weight uint32
	Set    bool // Weight counts, 0 too
	Drain  bool
}

// Readiness is what the host says of an instance.
type Readiness struct {
	Ready  bool
	Queue  bool   // not ready, but only because its accept queue does not move
	Resume bool   // can go on with flows of other instances
	Reason string // why not
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
	case q.virtual():
		return false
	case p == resuming:
		return r.Resume
	}
	return p == q || p.port == 0 && (p.proto == 0 || p.proto == q.proto)
}

type service struct {
	id        sid.ServiceID
	policy    Policy
	overrides map[string]Override
	ports     map[port]*table
	dirty     map[port]struct{}
	said      ServiceRule // as the routers have it
	isSaid    bool
}

// A table is a triple: who registered it, and the targets as the routers have them.
type table struct {
	instances map[*host]Readiness
	targets   []Target
}

func (s *service) weight(host string) uint32 {
	o := s.overrides[host]
	switch {
	case o.Drain:
		return 0
	case o.Set:
		return o.Weight
	case s.policy.Weight != 0:
		return s.policy.Weight
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

// servesAt is who serves p, true where it is ready, false where only its accept queue speaks against
// it; of a table that is made of others whoever serves one.
func (s *service) servesAt(p port) map[*host]bool {
	hosts := make(map[*host]bool)
	for q, t := range s.ports {
		for h, r := range t.instances {
			if p.covers(q, r) && (r.Ready || r.Queue) {
				hosts[h] = hosts[h] || r.Ready
			}
		}
	}
	return hosts
}

// compute weighs the instances of p. The doubtful serve only where no other could: hosts that answer
// no probe, and programs that do not accept. If every probe of a service's hosts fails at once, the
// probes are the more likely culprit; a program that takes its time for each request is slow, not dead;
// and sending flows to nobody would not help either (fail static). Who is gone never serves.
func (p *Plan) compute(s *service, q port) []Target {
	var up, doubtful []Target
	for h, ready := range s.servesAt(q) {
		at := h.place()
		t := Target{Locator: at.Locator, Weight: s.weight(h.name)}
		switch {
		case t.Weight == 0 || at.State == HostGone:
		case at.State == HostSuspect || !ready:
			t.Locator = h.best().Locator
			doubtful = append(doubtful, t)
		default:
			up = append(up, t)
		}
	}
	if len(up) == 0 {
		up = doubtful
	}
	slices.SortFunc(up, func(a, b Target) int { return cmp.Compare(a.Locator, b.Locator) })
	return up
}

// staying is what of the new targets the old table has already. Others must wait for the way to them.
func staying(old, new []Target) []Target {
	var both []Target
	for _, t := range new {
		if holds(old, t.Locator) {
			both = append(both, t)
		}
	}
	return both
}

// shrinks reports whether an old target is not among the new ones: such a change goes out first.
func shrinks(old, new []Target) bool {
	return slices.ContainsFunc(old, func(t Target) bool { return !holds(new, t.Locator) })
}

func holds(list []Target, l sid.Locator) bool {
	_, ok := slices.BinarySearchFunc(list, l, func(t Target, l sid.Locator) int { return cmp.Compare(t.Locator, l) })
	return ok
}
