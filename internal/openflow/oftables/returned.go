package oftables

import (
	"cmp"
	"slices"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// A packet that an instance returned once goes to another one, without the controller (docs/protocol.md §3.2): its label
// says who returned it, and that target is left out. A list for each target that leaves out that one would grow with the
// square of the targets. So more than four are divided in two parts of about the same weight, and what one of a part
// returns goes to the other part, by weight: half of those that are left share it, until the controller is back and
// takes the dead out. Up to four targets are a part each.
//
// The table returned tells by list and label which part is left out, the table others chooses by bits of the source. Not by
// the hash of the first choice, nor by its bits: all flows that a target returns would then meet the same one.
//
// What is returned again is the controller's, which knows all of §3.2.
const (
	mostAlone    = 4  // targets that are a part each
	markRoom     = 8  // marks of a list: its own, and one for each part
	returnedMost = 16 // the heaviest take what is returned: enough, and a bound of the entries of a list
	// returnedSlots is coarse: 1000:1 becomes 63:1, of those flows alone that a target returned.
	returnedSlots = 64
	// returnedShift is behind the bits of the table choose.
	returnedShift = 16
	// returnedEntries bounds those of all lists of a switch: ten targets take about 40. Lists that come later are punted.
	returnedEntries = 1 << 16
)

// Priorities of the table returned.
const (
	returnedBy     = 2
	returnedByElse = 1
)

// A part is some targets of a list; others are those of the rest.
type part struct{ targets, others []resolve.Target }

// partsOf divides the heaviest targets, heavy ones first, each to the part that is lightest.
func partsOf(targets []resolve.Target) []part {
	if len(targets) < 2 {
		return nil
	}
	heavy := slices.Clone(targets)
	slices.SortStableFunc(heavy, func(a, b resolve.Target) int { return cmp.Compare(b.Weight, a.Weight) })
	heavy = heavy[:min(len(heavy), returnedMost)]
	n := len(heavy)
	if n > mostAlone {
		n = 2
	}
	parts, sums := make([]part, n), make([]uint64, n)
	for _, x := range heavy {
		least := 0
		for i := range parts {
			if sums[i] < sums[least] {
				least = i
			}
		}
		parts[least].targets = append(parts[least].targets, x)
		sums[least] += uint64(x.Weight)
	}
	for i := range parts {
		for j := range parts {
			if i != j {
				parts[i].others = append(parts[i].others, parts[j].targets...)
			}
		}
		slices.SortFunc(parts[i].others, func(a, b resolve.Target) int { return cmp.Compare(a.Locator, b.Locator) })
	}
	return parts
}

// eachReturned are the entries for what targets of a list return.
func (t *Tables) eachReturned(l *list, suffix sid.Suffix, put func(flowKey, entry)) {
	for i, p := range partsOf(l.targets) {
		part := l.mark + 1 + uint32(i)
		on := []ofp.Instruction{mark(part), t.goTo(tableOthers)}
		for _, x := range p.targets {
			by := ofp.UintMasked(ofp.IPv6Label, uint64(sid.NewLabel(x.Locator, 1))&^labelRetry, labelRefuser)
			put(t.flow(t.table(tableReturned), returnedBy, PuntNothing, ofp.Match{ipv6, marked(l.mark), by}, on...))
		}
		if i == 0 { // somebody else returned it: whoever is not so heavy, or was in the list before
			put(t.flow(t.table(tableReturned), returnedByElse, PuntNothing, ofp.Match{ipv6, marked(l.mark)}, on...))
		}
		t.eachPiece(tableOthers, part, p.division(), returnedShift, p.others, suffix, put)
	}
}

func (p part) division() division {
	var weights []uint32
	for _, x := range p.others {
		weights = append(weights, x.Weight)
	}
	d, _ := divide(weights, 1, returnedSlots)
	return d
}

// addReturned puts them in, where there is room.
func (t *Tables) addReturned(l *list, suffix sid.Suffix) {
	if t.returned+len(l.targets) > returnedEntries {
		return
	}
	t.eachReturned(l, suffix, func(flowKey, entry) { l.returned++ })
	if t.returned+l.returned > returnedEntries {
		l.returned = 0
	}
	if t.returned += l.returned; l.returned > 0 {
		t.eachReturned(l, suffix, t.flows.set)
	}
}

func (t *Tables) dropReturned(l *list, suffix sid.Suffix) {
	if t.returned -= l.returned; l.returned > 0 {
		t.eachReturned(l, suffix, func(k flowKey, _ entry) { t.flows.unset(k) })
	}
}
