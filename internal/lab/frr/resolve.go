package frr

import (
	"cmp"
	"slices"
)

// resolve says what an entry comes to. A route whose next hop object is not there yet is not there either:
// it will be looked at again when that comes.
func (t *Table) resolve(e *entry) Change {
	c := Change{Prefix: e.route.Prefix}
	if !e.present {
		return c
	}
	c.Protocol = e.route.Protocol
	if e.route.Kind != Unicast {
		c.Kind = e.route.Kind
		return c
	}
	c.Via = e.route.Via
	if len(c.Via) == 0 {
		var blackhole bool
		if c.Via, blackhole = t.ways(e.route.HopID); blackhole {
			c.Kind = Blackhole
			return c
		}
	}
	if c.Via = ordered(c.Via); len(c.Via) != 0 {
		c.Kind = Unicast
	}
	return c
}

// ways lists what a next hop object comes to. Members of a group are no groups themselves: neither the kernel
// nor zebra makes such, so none can go round in circles.
func (t *Table) ways(id uint32) (via []Via, blackhole bool) {
	h, ok := t.hops[id]
	if !ok || h.Blackhole {
		return nil, ok
	}
	if h.Group == nil {
		return []Via{h.Via}, false
	}
	for _, m := range h.Group {
		if one, ok := t.hops[m.ID]; ok && one.Group == nil && !one.Blackhole {
			one.Via.Weight = m.Weight
			via = append(via, one.Via)
		}
	}
	return via, false
}

// ordered puts the ways into an order that does not depend on when they were learnt: a flow's hash then
// finds the same one after a restart.
func ordered(via []Via) []Via {
	via = slices.Clone(via)
	slices.SortFunc(via, func(a, b Via) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), a.Gateway.Compare(b.Gateway), cmp.Compare(a.Weight, b.Weight))
	})
	return via
}
