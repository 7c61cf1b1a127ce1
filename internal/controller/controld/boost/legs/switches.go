package legs

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// tell has a switch be told of a leg at the end of the turn, and returns the generation of that.
func (x *Legs) tell(at string, set, unset *apiv1.SteerLeg) uint64 {
	m := x.news[at]
	if m == nil {
		m = &apiv1.SteerLegs{Switch: at, Generation: x.in.Generation()}
		x.news[at] = m
	}
	if set != nil { // the last word on it counts
		m.Unset = slices.DeleteFunc(m.Unset, func(o *apiv1.SteerLeg) bool { return proto.Equal(o, set) })
		m.Set = append(m.Set, set)
	}
	if unset != nil {
		m.Set = slices.DeleteFunc(m.Set, func(o *apiv1.SteerLeg) bool { return proto.Equal(o, unset) })
		m.Unset = append(m.Unset, unset)
	}
	return m.Generation
}

// Flush tells switches what has changed in this turn: of an agent that has gone it may be thousands.
func (x *Legs) Flush() {
	for _, name := range slices.Sorted(maps.Keys(x.news)) {
		x.in.Steer(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_Legs{Legs: x.news[name]}})
	}
	clear(x.news)
}

// Idle takes that a switch has taken rules out by itself, for no packet was of them. A leg whose agent no switch has heard for long
// is over, whatever the end host still sends; and so is one that no switch has any more. Where several switches are on the way each
// sees one half of it.
func (x *Legs) Idle(m *apiv1.SteerLegs) {
	silent := map[string]bool{} // by leg: only the agent is
	for _, l := range m.GetUnset() {
		silent[l.Host+" "+l.Other+" "+l.Agent] = l.Silent
	}
	for _, l := range x.all {
		said := l.message()
		only, is := silent[said.Host+" "+said.Other+" "+said.Agent]
		if !is {
			continue
		}
		if l.silent == nil {
			l.silent = map[string]bool{}
		}
		if l.silent[m.Switch] = true; !only {
			delete(l.needs, m.Switch)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(l.needs)), func(name string) bool { return !l.silent[name] }) {
			x.end(l)
		}
	}
}
