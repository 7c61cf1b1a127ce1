package mobility

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Evict ends the flows of guests: clients of what they served turn to others at once, and what their programs began
// is no flow of this host any more.
func (s *Sessions) Evict(gone func(guest uint16) bool) {
	if s.engine == nil {
		return
	}
	of := func(f host.Flow) bool { return gone(f.Tuple.Guest) }
	s.Shed(wire.ProcessDied, of)
	s.Settle(time.Now())
	var steps []host.Step
	var ended []host.Tuple
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // what cannot be read goes by age
		if of(f) && !s.isQuiet(f.Tuple) {
			steps = append(steps, host.Step{Verb: host.Forget, Flow: f.Tuple})
		}
		if of(f) && f.Proto == sid.TCP {
			ended = append(ended, f.Tuple)
		}
		return true
	})
	s.kernel.End(ended)
	s.edge.Steer(steps) //nolint:errcheck // what is gone is forgotten
}
