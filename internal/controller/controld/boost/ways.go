package boost

import (
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/health"
)

// maxWays is how many paths a trunk has at most: two families of as many addresses as an agent has.
const maxWays = 16

// ways bounds what an agent says of its paths to another one, and tells which of several are lost, or back. Of two agents the one
// tells whose name comes first, which calls the other: it knows why. That all are lost, or the only one, the trunk shows.
func (x *Boost) ways(a *agent, t *apiv1.BoostTrunk, before *apiv1.BoostLoad) {
	t.Ways = slices.DeleteFunc(t.Ways, func(w *apiv1.BoostWay) bool { return !isAddress(w.Own) || !isAddress(w.Other) })
	t.Ways = t.Ways[:min(len(t.Ways), maxWays)]
	var was []*apiv1.BoostWay
	for _, b := range before.GetTrunks() {
		if b.Agent == t.Agent {
			was = b.Ways
		}
	}
	for _, w := range t.Ways {
		w.Path, w.Why = pathFrom(w.Path), events.Printable(events.Shortened(w.Why))
		i := slices.IndexFunc(was, func(b *apiv1.BoostWay) bool { return b.Own == w.Own && b.Other == w.Other })
		if len(t.Ways) < 2 || a.Name > t.Agent || i < 0 || was[i].Up == w.Up {
			continue
		}
		kind, text := "boost.path", "path to another agent is there again"
		if !w.Up {
			kind, text = "boost.pathlost", events.Because("path to another agent is lost; what is carried goes on by others", w.Why)
		}
		x.Events.Tell(kind, a.Name, text, "other", t.Agent, "path", w.Own+" to "+w.Other)
	}
}

func isAddress(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Zone() == ""
}

// lostWays are the paths that an agent has not, while it has others to the same agent.
func lostWays(a *agent) (list []health.Way) {
	if a.session == nil {
		return nil
	}
	for _, t := range a.load.GetTrunks() {
		if !t.Up || a.Name > t.Agent {
			continue
		}
		for _, w := range t.Ways {
			if !w.Up {
				list = append(list, health.Way{Other: t.Agent, Path: w.Own + " to " + w.Other, Why: w.Why, Since: time.UnixMilli(w.SinceUnixMs)})
			}
		}
	}
	return list
}
