package boost

import (
	"cmp"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Figures are what scrapes read of boost.
type Figures struct {
	Agents []*apiv1.BoostAgent
	Bound  map[string]int // directions of sessions by what binds each
}

// unclear is the binding of a direction that has none which is clear.
const unclear = "unclear"

// Figures counts what there is.
func (x *Boost) Figures() Figures {
	f := Figures{Bound: map[string]int{}}
	for _, a := range x.agents {
		f.Agents = append(f.Agents, x.apiAgent(a))
	}
	for _, s := range x.carried(&apiv1.ListBoostSessionsRequest{}, end{}, end{}) {
		sent, received := bound(waitsFrom(s.NearWaits), s.far, s.nearLoad, s.farLoad)
		f.Bound[cmp.Or(sent, unclear)]++
		f.Bound[cmp.Or(received, unclear)]++
	}
	return f
}
