package plan

import (
	"cmp"
	"maps"
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
	Reason string // why not
}

// port is a triple inside its service.
type port struct {
	proto sid.Proto
	port  uint16
}

// Two tables of a service stand for any port, which no instance registers: of any protocol, for ping,
// and of UDP, for fragments, which have no ports.
var (
	ping      = port{}
	datagrams = port{proto: sid.UDP}
)

// covers reports whether the table of p has the instances of q.
func (p port) covers(q port) bool {
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
	instances map[sid.Locator]Readiness
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
	s.dirty[p], s.dirty[ping] = struct{}{}, struct{}{}
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
// it; of any port whoever serves one.
func (s *service) servesAt(p port) map[sid.Locator]bool {
	hosts := make(map[sid.Locator]bool)
	for q, t := range s.ports {
		if !p.covers(q) {
			continue
		}
		for l, r := range t.instances {
			if r.Ready || r.Queue {
				hosts[l] = hosts[l] || r.Ready
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
	hosts := s.servesAt(q)
	for _, l := range slices.Sorted(maps.Keys(hosts)) {
		h, known := p.hosts[l]
		if !known {
			continue
		}
		t := Target{Locator: l, Weight: s.weight(h.Name)}
		switch {
		case t.Weight == 0 || h.State == HostGone:
		case h.State == HostSuspect || !hosts[l]:
			doubtful = append(doubtful, t)
		default:
			up = append(up, t)
		}
	}
	if len(up) == 0 {
		return doubtful
	}
	return up
}

// shrinks reports whether an old target is not among the new ones: such a change goes out first.
func shrinks(old, new []Target) bool {
	for _, o := range old {
		if _, ok := slices.BinarySearchFunc(new, o.Locator, func(t Target, l sid.Locator) int { return cmp.Compare(t.Locator, l) }); !ok {
			return true
		}
	}
	return false
}
