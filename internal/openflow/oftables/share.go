package oftables

import (
	"scaffold.dev/scaffold/sid"
)

// A Share is what a target gets of new flows.
type Share struct {
	Locator sid.Locator
	Weight  uint32 // asked for
	Slots   uint32 // got
	Of      uint32 // slots in all
	Exact   bool   // Slots/Of is what Weight asks for
}

// Shares are the effective weights of a triple's targets, by locator; none where the switch resolves it to nobody.
func (t *Tables) Shares(triple sid.Triple) []Share {
	s := t.services[triple.Service]
	if s == nil || s.triples[triple] == nil || !s.resolvable() || t.own == 0 || !t.resolves {
		return nil
	}
	x := s.triples[triple]
	if !x.listed {
		return nil
	}
	l := t.lists[x.list]
	shares := make([]Share, len(x.targets))
	for i, target := range x.targets {
		shares[i] = Share{target.Locator, target.Weight, l.slots[i], l.of, l.due(l.weights, i)}
	}
	return shares
}
