package boost

import (
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/tune"
)

// A farKey is a session's at its far agent.
type farKey struct {
	near   string
	number uint64
}

// waitsFor is what an agent waits for at its end of a session, and where it has that end, if it is a far one with an address of its
// own.
type waitsFor struct {
	reads, writes tune.Look
	at            netip.AddrPort
}

func waitsFrom(m *apiv1.BoostWaits) waitsFor {
	return waitsFor{reads: tune.LookNamed(m.GetReads()), writes: tune.LookNamed(m.GetWrites())}
}

func (w waitsFor) message() *apiv1.BoostWaits {
	return &apiv1.BoostWaits{Reads: w.reads.String(), Writes: w.writes.String()}
}

// waitsAt takes what an agent says of sessions that others have opened. It may come before the other one's word, and stays
// until this one takes it back: a few bytes each, of agents that there are, for as many sessions as are known of an agent.
func (x *Boost) waitsAt(a *agent, list []*apiv1.BoostSessionWaits) {
	for _, m := range list {
		key := farKey{m.Near, m.Number}
		if m.Waits == nil {
			delete(a.waits, key)
			continue
		}
		if _, known := a.waits[key]; !known && (len(a.waits) >= maxSessions || x.agents[m.Near] == nil) {
			continue
		}
		if a.waits == nil {
			a.waits = map[farKey]waitsFor{}
		}
		w := waitsFrom(m.Waits)
		if at, err := lane.ParseEnd(m.At); err == nil {
			w.at = at
		}
		a.waits[key] = w
	}
}

// The ends of a session in words.
const nearEnd, farEnd = "near agent", "far agent"

// bindings are what binds a session's two directions, by what both agents say and how busy each is.
func bindings(near, far waitsFor, nearLoad, farLoad float64) (sent, received tune.Binding) {
	sent = tune.Bind(tune.Side{Found: near.reads, Busy: nearLoad}, tune.Side{Found: far.writes, Busy: farLoad})
	received = tune.Bind(tune.Side{Found: far.reads, Busy: farLoad}, tune.Side{Found: near.writes, Busy: nearLoad})
	return sent, received
}

// atFar is what the agent at a session's far end says of it, and how that one is; nil: nobody knows.
func (x *Boost) atFar(s carried) (w waitsFor, load *apiv1.BoostLoad) {
	if far := x.agents[s.of.Far]; far != nil && far.session != nil {
		return far.waits[farKey{s.of.Near, s.Number}], far.load
	}
	return w, nil
}

// pathTo is what of the path to another agent binds, by the word of the one that sends; nil: nothing that is clear.
func pathTo(other string, load *apiv1.BoostLoad) *apiv1.BoostPath {
	for _, t := range load.GetTrunks() {
		if t.Agent == other {
			return t.Path
		}
	}
	return nil
}

// pathFrom is such a word as it is kept; nil where it is none that is known here.
func pathFrom(m *apiv1.BoostPath) *apiv1.BoostPath {
	if tune.CauseNamed(m.GetBound()) == tune.NoCause {
		return nil
	}
	return &apiv1.BoostPath{Bound: m.Bound, Rate: m.Rate, Loss: part(m.Loss), Held: part(m.Held), Connections: m.Connections}
}

// part is a number from 0 to 1, also where it was none at all.
func part(x float64) float64 {
	if !(x >= 0) {
		return 0
	}
	return min(x, 1)
}

// An end is an address that is asked for, of a port or of any.
type end struct {
	addr netip.Addr // invalid: any
	port uint16     // 0: any
}

func endNamed(text string) (e end, err error) {
	if text == "" {
		return e, nil
	}
	if a, err := lane.ParseEnd(text); err == nil {
		return end{a.Addr(), a.Port()}, nil
	}
	e.addr, err = netip.ParseAddr(text)
	return e, err
}

func (e end) is(a netip.AddrPort) bool {
	return (!e.addr.IsValid() || e.addr == a.Addr()) && (e.port == 0 || e.port == a.Port())
}
