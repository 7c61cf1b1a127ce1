package links

import (
	"slices"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// Status is one link at this moment.
type Status struct {
	Ends       [2]string `json:"ends"`
	Interfaces [2]string `json:"interfaces"`
	State      string    `json:"state"` // "up", "cut" (loses everything), "unplugged", "failed", "partitioned", "down"
	Rate       uint64    `json:"rate_bit_s,omitempty"`
	MTU        int       `json:"mtu"`

	Emulated *[2]string `json:"emulated,omitempty"` // present parameters, there and back; nil for a veth pair
}

// Status looks at the links, in the order of the file; nothing of it is remembered.
func (l *Links) Status() (all []Status) {
	w := wires.New()
	defer w.Close()
	emulated, _ := l.Engine.Links() // without the engine its links are down, which is what is shown
	for i, c := range l.Plan.Cable {
		e := emulated.Cable(i)
		status := Status{
			Ends: c.Ends, Interfaces: [2]string{c.Ports[0].Dev, c.Ports[1].Dev},
			State: stateOf(w, c, e), Rate: c.Rate, MTU: c.MTU,
		}
		if e != nil {
			params := e.Params()
			status.Emulated = &params
		}
		all = append(all, status)
	}
	return all
}

// states of links are called after what the engine loses packets for, the first that holds.
var states = []struct{ cause, state string }{
	{emud.CauseFail, "failed"}, {emud.CauseUnplug, "unplugged"}, {emud.CausePartition, "partitioned"}, {emud.CauseCut, "cut"},
}

// stateOf looks at a link, of which e is what the engine knows, nil for one that is none of the engine's.
func stateOf(w *wires.Wirer, c *plan.Link, e *engine.Link) string {
	if c.Emulated != nil && e == nil {
		return "down" // the engine is gone
	}
	for _, s := range states {
		if e != nil && slices.Contains(e.Causes, s.cause) {
			return s.state
		}
	}
	return w.State(c)
}
