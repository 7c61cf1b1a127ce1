package oftables

import (
	"cmp"
	"slices"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// A service is one that the switch resolves, or would if it could: what is known of it may come in any order.
type service struct {
	id      sid.ServiceID
	rule    plan.ServiceRule
	known   bool // rule counts
	triples map[sid.Triple]*resolution
}

// A resolution is the targets of a triple, and the list that its entries use.
type resolution struct {
	targets []resolve.Target
	list    listKey
	listed  bool
}

// resolvable reports whether packets for the service may meet an instance at all; docs/protocol.md §3.5 has the
// answers otherwise.
func (s *service) resolvable() bool { return s.known && !s.rule.Forbidden && s.rule.Instances > 0 }

func (t *Tables) service(id sid.ServiceID) *service {
	s := t.services[id]
	if s == nil {
		s = &service{id: id, triples: map[sid.Triple]*resolution{}}
		t.services[id] = s
		t.suffixes[id.Suffix] = append(t.suffixes[id.Suffix], s)
		t.shareSuffix(s)
	}
	return s
}

// forget drops a service of which nothing is known any more.
func (t *Tables) forget(s *service) {
	if s.known || len(s.triples) > 0 {
		return
	}
	delete(t.services, s.id)
	others := slices.DeleteFunc(t.suffixes[s.id.Suffix], func(x *service) bool { return x == s })
	if t.suffixes[s.id.Suffix] = others; len(others) == 0 {
		delete(t.suffixes, s.id.Suffix)
	}
	t.shareSuffix(s)
}

// shareSuffix renders those that have the suffix of a service that came or went.
func (t *Tables) shareSuffix(s *service) {
	for _, other := range t.suffixes[s.id.Suffix] {
		if other != s {
			t.renderService(other)
		}
	}
}

func (t *Tables) setService(r plan.ServiceRule) {
	s := t.service(r.Service)
	was := s.resolvable()
	s.rule, s.known = r, !r.Gone
	if s.resolvable() != was {
		t.renderService(s)
	}
	t.forget(s)
}

func (t *Tables) setResolution(r plan.Resolution) {
	s := t.service(r.Triple.Service)
	targets := slices.DeleteFunc(slices.Clone(r.Targets), func(x resolve.Target) bool { return x.Weight == 0 })
	slices.SortFunc(targets, func(a, b resolve.Target) int { return cmp.Compare(a.Locator, b.Locator) })
	x := s.triples[r.Triple]
	if x == nil {
		x = &resolution{}
		s.triples[r.Triple] = x
	}
	x.targets = targets
	t.renderTriple(s, r.Triple)
	if len(targets) == 0 {
		delete(s.triples, r.Triple)
	}
	t.forget(s)
}

func (t *Tables) renderService(s *service) {
	for triple := range s.triples {
		t.renderTriple(s, triple)
	}
}

// renderTriple puts in the entries of a triple, or takes them out.
func (t *Tables) renderTriple(s *service, triple sid.Triple) {
	x := s.triples[triple]
	old, had := x.list, x.listed
	x.listed = false
	what, priority, ok := kind(triple)
	hold := ok && t.own != 0 && t.resolves && s.resolvable() && len(x.targets) > 0
	var is []ofp.Instruction
	if hold {
		is = t.toTargets(triple, x)
	}
	for i, dst := range t.destinations(s.id) {
		key, e := t.flow(t.table(tableResolve), priority, PuntNothing, append(ofp.Match{ipv6, dst}, what...), is...)
		if hold && (i == 0 || len(t.suffixes[s.id.Suffix]) == 1) {
			t.flows.set(key, e)
		} else {
			t.flows.unset(key)
		}
	}
	if had {
		t.release(old) // last: a list that stays is not made anew
	}
}

// toTargets is the end of an entry whose packets go to one of the targets.
func (t *Tables) toTargets(triple sid.Triple, x *resolution) []ofp.Instruction {
	x.list, x.listed = t.listOf(x.targets, triple.Service.Suffix, triple.Port == 0), true
	return t.lists[x.list].to(t)
}

// Priorities of the table resolve. Fragments, nearly all of datagrams, have the table of those where there is one, else
// that for any port.
const (
	resolveFragment = 2
	resolveElse     = 1
)

// kind is what packets of a triple are like besides their destination, and how much it goes before others; ok is false
// of what no packet is like.
func kind(triple sid.Triple) (m ofp.Match, priority uint16, ok bool) {
	switch {
	case triple.Port == 0 && triple.Proto == sid.UDP:
		return ofp.Match{marked(classFragment)}, resolveFragment, true
	case triple.Port == 0 && triple.Proto == 0:
		return ofp.Match{ofp.UintMasked(ofp.Metadata, uint64(classBit)<<markShift, uint64(classBit)<<markShift)}, resolveElse, true
	case triple.Proto == sid.TCP:
		return ofp.Match{proto(sid.TCP), ofp.Uint(ofp.TCPDst, uint64(triple.Port))}, resolveElse, true
	case triple.Proto == sid.UDP:
		return ofp.Match{proto(sid.UDP), ofp.Uint(ofp.UDPDst, uint64(triple.Port))}, resolveElse, true
	}
	return nil, 0, false
}

// destinations are those of packets for the service: its address, and the one that they have once they were sent to
// this AS. That one does not have the ssID: of services that share a suffix, which nobody meets by chance, none is
// reached by it.
func (t *Tables) destinations(id sid.ServiceID) [2]ofp.OXM {
	return [2]ofp.OXM{
		ofp.Addr(ofp.IPv6Dst, t.space.ServiceAddr(id)),
		ofp.Addr(ofp.IPv6Dst, t.space.Locator(0).Addr(uint64(id.Suffix))),
	}
}
