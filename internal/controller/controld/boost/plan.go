package boost

import (
	"maps"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
)

// Flush plans anew what has changed, and tells agents what differs for them.
func (x *Boost) Flush() {
	x.legs.Flush()
	if x.waiting() {
		return
	}
	x.lookAtNames()
	if x.stale || !x.wake.IsZero() && !x.clock().Before(x.wake) {
		x.stale, x.untold = false, true
		r := lane.Plan(x.state())
		x.lanes, x.held = r.Lanes, nil
		x.planNames()
		x.judge(r.Unserved)
		x.wake = r.Next
		x.arm()
	}
	if x.untold || x.switches.changed {
		x.steer()
	}
	if !x.untold {
		return
	}
	x.untold = false
	held := x.former()
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		x.tell(x.agents[name], held[name])
	}
}

// waiting reports whether agents of before are still to come, or to be seen by switches, after this controller began to lead.
func (x *Boost) waiting() bool { return len(x.waits)+len(x.switches.unseen) > 0 }

// arm has the loop look again when an entry begins or ends: what runs in it is followed by a flush. Operators mean the time
// of day, which is set now and then, and timers do not follow it; so it looks each minute as well.
func (x *Boost) arm() {
	if x.wake.IsZero() || !x.armed.IsZero() && !x.wake.Before(x.armed) {
		return
	}
	at := x.wake
	if latest := x.clock().Add(time.Minute); latest.Before(at) {
		at = latest
	}
	x.armed = at
	x.Loop.After(max(at.Sub(x.clock()), time.Millisecond), func() {
		if x.armed.Equal(at) { // else an earlier one was set since, and has looked or will
			x.armed = time.Time{}
			x.arm()
		}
	})
}

func (x *Boost) state() lane.State {
	x.kept = false
	s := lane.State{Now: x.clock(), Sites: planned(x.sites), Entries: plannedEntries(x.entries), Before: x.lanes, RTT: map[[2]string]time.Duration{}}
	for _, l := range x.held {
		s.Before = append(s.Before, l.Lane)
	}
	for p, rtt := range x.rtt {
		s.RTT[p] = rtt
	}
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		a := x.agents[name]
		s.Agents = append(s.Agents, lane.Agent{
			Name: name, Site: x.siteOf(name), Here: x.alive(a) || x.clock().Sub(a.since) < x.Patience,
			Draining: a.Draining, Load: a.load.GetLoad(), Seen: x.switches.places[name] != nil, Names: x.hosts[name] != "", Rewrites: a.rewritten(), Stops: x.stops(a),
		})
	}
	return s
}

// judge tells of entries that nobody carries, once, and of those that somebody carries again.
func (x *Boost) judge(unserved []lane.Unserved) {
	now := map[string]lack{}
	for _, u := range unserved {
		was, before := x.unserved[u.Entry]
		if !before {
			was.since = x.clock()
		}
		if now[u.Entry] = (lack{u.Why, was.since}); was.why != u.Why {
			x.Events.Tell("boost.unserved", u.Entry, "connections of the entry pass unboosted: "+u.Why)
		}
	}
	carried := map[string]bool{}
	for i := range x.lanes {
		carried[x.lanes[i].Entry] = true
	}
	for entry := range x.unserved {
		if carried[entry] { // else it is over, or was taken away
			x.Events.Tell("boost.served", entry, "connections of the entry are boosted")
		}
	}
	x.unserved = now
}

func apiLane(l *lane.Lane) *apiv1.BoostLane {
	return &apiv1.BoostLane{
		Number: l.Number, Entry: l.Entry, Client: l.Client.String(), Server: l.Server.String(), Port: uint32(l.Port),
		Slot: uint32(l.Slot), Bits: uint32(l.Bits), Near: l.Near, Far: l.Far, AtOnce: l.AtOnce, Named: l.Named, Rewrite: l.Rewrite,
	}
}
