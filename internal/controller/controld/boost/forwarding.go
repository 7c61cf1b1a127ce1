package boost

import (
	"fmt"
	"slices"

	"scaffold.dev/scaffold/internal/core/lane"
)

// forwards notes of which families an agent's machine forwards nothing now. At a switch, nothing of these is sent there that an agent
// may leave to go on by itself. That it forwards them again is believed once it has not stopped any for a while: who flaps, or lies,
// has lanes planned anew no more often.
func (x *Boost) forwards(a *agent, stops lane.Family) {
	more := stops &^ a.stops
	if stops == a.stops || more == 0 && x.clock().Sub(a.stopped) < x.Patience {
		return
	}
	if more != 0 {
		stops |= a.stops
		a.stopped = x.clock()
		if x.needs(a, more) {
			x.Events.Tell("boost.trouble", a.Name, fmt.Sprintf("the agent's machine forwards no %v: of that it gets only connections of names, and those that switches rewrite; there: %s", more, more.Forwarding()))
		}
	}
	a.stops, x.stale = stops, true
}

// needs reports whether entries have connections of these families sent by way of an agent's machine.
func (x *Boost) needs(a *agent, families lane.Family) bool {
	site := x.siteOf(a.Name)
	return len(x.sites[site].Switches) > 0 && slices.ContainsFunc(plannedEntries(x.entries), func(e lane.Entry) bool {
		return !e.Rewrite && lane.FamilyOf(e.Client.Addr())&families != 0 && (x.siteAt(e.Client) == site || x.siteAt(e.Server) == site)
	})
}

// stops are the families for which an agent is planned around. One that carries more connections than may have rules of their own keeps
// its lanes, and takes what is new of them, until they are fewer: the switch goes on sending it these lanes (crowded), whoever has them.
func (x *Boost) stops(a *agent) lane.Family {
	if a.stops == 0 {
		return 0
	}
	carries := 0
	for _, near := range x.agents {
		for _, c := range near.sessions {
			if c.of.Near == a.Name || c.of.Far == a.Name {
				carries++
			}
		}
	}
	if carries > maxPins {
		x.kept = true
		return 0
	}
	return a.stops
}
