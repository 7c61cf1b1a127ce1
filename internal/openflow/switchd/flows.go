package switchd

import (
	"time"

	"scaffold.dev/scaffold/internal/openflow/oftables"
)

// flowsOf are an owner's wishes as the tables take them.
func flowsOf(wishes []ownFlow) []oftables.Flow {
	flows := make([]oftables.Flow, len(wishes))
	for i, f := range wishes {
		flows[i] = oftables.Flow{ID: f.ID, Table: f.Table, Priority: f.Priority, First: f.First, Match: f.Match,
			Instructions: f.Instructions, Punt: f.Punt, Copy: f.Copy, Rate: f.Rate,
			Idle: uint16(f.Idle / time.Second), Lease: uint16(f.Lease / time.Second)}
	}
	return flows
}

// sharesOf is how the tables split new flows.
func sharesOf(t *oftables.Tables) (list []share) {
	for _, triple := range t.Triples() {
		s := share{Of: triple}
		for _, x := range t.Shares(triple) {
			s.Targets = append(s.Targets, shareTarget{Locator: x.Locator, Weight: x.Weight, Share: float64(x.Slots) / float64(max(1, x.Of))})
		}
		if len(s.Targets) > 0 {
			list = append(list, s)
		}
	}
	return list
}
