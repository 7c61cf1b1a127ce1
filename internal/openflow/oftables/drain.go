package oftables

import (
	"cmp"
	"maps"
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Drain is what turns what the switch was told into what it should hold, which from here on counts as told. Nothing
// is broken before what replaces it is made: meters, groups, entries from the end of the pipeline to its beginning and
// in each table the narrow ones first, then what goes, the other way round. An entry that changes is added over the old one, which switches do at once.
// Who cannot tell all of it to the switch reads back what it has, and calls Learn.
func (t *Tables) Drain() (bodies []ofp.Body) {
	meters, groups := t.meters.drain(nil), t.groups.drain(nil)
	flows := t.flows.drain(func(k flowKey) bool { _, is := t.foreign[k]; return is })
	slices.SortFunc(meters, func(a, b change[ofp.MeterID, meter]) int { return cmp.Compare(a.key, b.key) })
	slices.SortFunc(groups, func(a, b change[ofp.GroupID, group]) int { return cmp.Compare(a.key, b.key) })
	slices.SortFunc(flows, func(a, b change[flowKey, entry]) int { return a.key.compare(b.key) })
	for _, c := range meters {
		if !c.gone {
			bodies = append(bodies, c.value.mod(pick(c.had, ofp.MeterModify, ofp.MeterAdd), c.key))
		}
	}
	for _, c := range groups {
		if !c.gone {
			bodies = append(bodies, c.value.mod(pick(c.had, ofp.GroupModify, ofp.GroupAdd), c.key))
		}
	}
	for _, c := range flows {
		if !c.gone {
			bodies = append(bodies, c.key.add(c.value))
		}
	}
	for _, c := range slices.Backward(flows) {
		if c.gone {
			bodies = append(bodies, c.key.remove(c.value))
		}
	}
	for _, c := range groups {
		if c.gone {
			bodies = append(bodies, group{kind: c.value.kind}.mod(ofp.GroupDelete, c.key))
		}
	}
	for _, c := range meters {
		if c.gone {
			bodies = append(bodies, c.value.mod(ofp.MeterDelete, c.key))
		}
	}
	return bodies
}

func pick[T any](a bool, yes, no T) T {
	if a {
		return yes
	}
	return no
}

// add has the switch tell when it takes out an entry that nothing has used.
func (k flowKey) add(e entry) ofp.FlowMod {
	m := ofp.FlowMod{Command: ofp.FlowAdd, Cookie: e.cookie, Table: k.table, Priority: k.priority, IdleTimeout: e.idle, HardTimeout: e.hard,
		Match: e.match, Instructions: e.instructions}
	if e.idle != 0 {
		m.Flags = ofp.FlagSendRemoved
	}
	return m
}

// remove takes an entry out only while it is ours.
func (k flowKey) remove(e entry) ofp.FlowMod {
	return ofp.FlowMod{Command: ofp.FlowDeleteStrict, Cookie: cookieOurs, CookieMask: cookieMask,
		Table: k.table, Priority: k.priority, Match: e.match}
}

// Removal takes all of ours out of the switch, and nothing else: groups and meters are those that it was told or
// was seen to have. What the tables should hold stays wanted; the next Drain would put it back.
func (t *Tables) Removal() (bodies []ofp.Body) {
	bodies = append(bodies, ofp.FlowMod{Command: ofp.FlowDelete, Table: ofp.AllTables, Cookie: cookieOurs, CookieMask: cookieMask})
	groups := maps.Collect(t.groups.told())
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		bodies = append(bodies, group{kind: groups[id].kind}.mod(ofp.GroupDelete, id))
	}
	meters := maps.Collect(t.meters.told())
	for _, id := range slices.Sorted(maps.Keys(meters)) {
		bodies = append(bodies, meter{}.mod(ofp.MeterDelete, id))
	}
	t.flows.learn(map[flowKey]entry{})
	t.groups.learn(map[ofp.GroupID]group{})
	t.meters.learn(map[ofp.MeterID]meter{})
	return bodies
}

// Split parts what Drain or Removal says into what goes into a bundle and what does not: Open vSwitch takes no
// meters there. The parts are to be done in order.
func Split(bodies []ofp.Body) (before, bundle, after []ofp.Body) {
	for _, b := range bodies {
		m, isMeter := b.(ofp.MeterMod)
		switch {
		case !isMeter:
			bundle = append(bundle, b)
		case m.Command == ofp.MeterDelete:
			after = append(after, b)
		default:
			before = append(before, b)
		}
	}
	return before, bundle, after
}
