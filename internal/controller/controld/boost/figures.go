package boost

import (
	"cmp"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/tune"
)

// Figures are what scrapes read of boost.
type Figures struct {
	Agents []*apiv1.BoostAgent
	Bound  map[string]int    // directions of sessions by what binds each
	Legs   map[string]int    // connections that switches of a site rewrite, by its name
	Firsts map[string]uint64 // first packets that waited at a switch, by what became of them
}

// verdicts are what becomes of first packets, in words.
var verdicts = map[apiv1.BoostVerdict]string{
	apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT: "accepted", apiv1.BoostVerdict_BOOST_VERDICT_PASS: "passed", apiv1.BoostVerdict_BOOST_VERDICT_DROP: "dropped",
}

// unclear is the binding of a direction that has none which is clear.
const unclear = "unclear"

// Figures counts what there is. It runs in the loop: sessions are counted where they are, of which there may be tens of
// thousands, and none is built for it.
func (x *Boost) Figures() Figures {
	f := Figures{Bound: map[string]int{}, Legs: x.legs.BySite(), Firsts: map[string]uint64{}}
	decided := x.legs.Verdicts()
	for verdict, word := range verdicts {
		f.Firsts[word] = decided[verdict]
	}
	sent, received := map[tune.Binding]int{}, map[tune.Binding]int{}
	for _, a := range x.agents {
		f.Agents = append(f.Agents, x.apiAgent(a))
		if a.session == nil {
			continue // nobody knows what it carries now
		}
		for _, s := range a.sessions {
			far, farLoad := x.atFar(s)
			by, back := bindings(s.waits, far, a.load.GetLoad(), farLoad.GetLoad())
			sent[by]++
			received[back]++
		}
	}
	for by, count := range sent {
		f.Bound[cmp.Or(by.At(nearEnd, farEnd), unclear)] += count
	}
	for by, count := range received {
		f.Bound[cmp.Or(by.At(farEnd, nearEnd), unclear)] += count
	}
	return f
}
