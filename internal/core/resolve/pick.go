package resolve

import "scaffold.dev/scaffold/sid"

// Pick chooses the target of a packet whose Hash is k; ok is false where the table is empty.
func (t Table) Pick(k uint64) (l sid.Locator, ok bool) {
	if t.Empty() {
		return 0, false
	}
	e := t.nodes[0].pick(k)
	for e.Child {
		e = t.node(e.ID).pick(k)
	}
	return sid.Locator(e.ID), true
}

// pick is the weighted rendezvous of one node: the least cost per weight wins, compared exactly by
// cross-multiplication; of equals the first, which has the lower ID.
func (n Node) pick(k uint64) Entry {
	best, bestCost := n.Entries[0], cost(mix(k^n.Entries[0].ID))
	for _, e := range n.Entries[1:] {
		c := cost(mix(k ^ e.ID))
		if c*uint64(best.Weight) < bestCost*uint64(e.Weight) {
			best, bestCost = e, c
		}
	}
	return best
}

func (t Table) node(id uint64) Node {
	for _, n := range t.nodes {
		if n.ID == id {
			return n
		}
	}
	panic("resolve: a table names a child that it does not have")
}

// Share is the part of all flows that goes to the target at l: its weight as this data plane holds it.
func (t Table) Share(l sid.Locator) float64 {
	if t.Empty() {
		return 0
	}
	share, n := 1.0, t.nodes[0]
	for depth := 1; ; depth++ {
		e, all, ok := n.find(l, depth)
		if !ok {
			return 0
		}
		share *= float64(e.Weight) / float64(all)
		if !e.Child {
			return share
		}
		n = t.node(e.ID)
	}
}

// find returns the entry that leads to l and the sum of all weights.
func (n Node) find(l sid.Locator, depth int) (found Entry, all uint64, ok bool) {
	for _, e := range n.Entries {
		all += uint64(e.Weight)
		if !e.Child && e.ID == uint64(l) || e.Child && e.ID == childID(l, depth) {
			found, ok = e, true
		}
	}
	return found, all, ok
}
