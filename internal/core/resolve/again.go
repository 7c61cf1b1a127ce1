package resolve

import (
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// An Outcome is what became of a choice.
type Outcome uint8

// The outcomes.
const (
	Chosen     Outcome = iota
	Nobody             // the table is empty
	AllRefused         // everybody in the table has returned the packet
)

// Choose chooses the target of a packet from src: Pick, as long as nobody has returned it. A packet that was returned
// goes to somebody else: its sender's draws before are made again, and each leaves out what those before it chose, so
// that two instances need one return, and a heavy instance that died takes its share once. Among those that are left
// the weights hold: they are drawn without replacement. Once all were drawn it begins anew: the controller may have
// changed the table between two returns, and then others were asked than these draws say. Who returned the packet last is
// known by its label, and is left out in any case.
func (t Table) Choose(src netip.Addr, label sid.Label) (sid.Locator, Outcome) {
	to, _, outcome := t.ChoosePast(src, label, func(sid.Locator) bool { return false })
	return to, outcome
}

// refusers are numbers of hosts that are left out in any case: who returned the packet last, and who of the silent came
// last. 0 is nobody.
type refusers [2]uint16

// draw is a choice among those that are not left out. Weights of inner nodes are sums, and lose what is left out of
// them; ok is false where nobody is left.
func (t Table) draw(k uint64, out []Target, by refusers) (x Target, ok bool) {
	n := t.nodes[0]
	for {
		e, ok := n.draw(k, out, by)
		if !ok {
			return Target{}, false
		}
		if !e.Child {
			return Target{sid.Locator(e.ID), e.Weight << n.Shift}, true
		}
		n = t.node(e.ID)
	}
}

func (n Node) draw(k uint64, out []Target, by refusers) (best Entry, ok bool) {
	var bestCost, bestWeight uint64
	for _, e := range n.Entries {
		w := n.left(e, out, by)
		if w == 0 {
			continue
		}
		c := cost(mix(k ^ e.ID))
		if !ok || c*bestWeight < bestCost*w {
			best, bestCost, bestWeight, ok = e, c, w, true
		}
	}
	return best, ok
}

// left is what of the entry's weight is not left out.
func (n Node) left(e Entry, out []Target, by refusers) uint64 {
	if host := uint16(e.ID); !e.Child && host != 0 && (host == by[0] || host == by[1]) {
		return 0
	}
	w := int64(e.Weight)
	for _, x := range out {
		if e.holds(x.Locator) {
			w -= int64(max(1, x.Weight>>n.Shift))
		}
	}
	return uint64(max(0, w))
}

// holds says whether the entry is the target's own or that of a node that it is below.
func (e Entry) holds(l sid.Locator) bool {
	if !e.Child {
		return e.ID == uint64(l)
	}
	return childID(l, int(e.ID&(Fanout-1))) == e.ID
}
