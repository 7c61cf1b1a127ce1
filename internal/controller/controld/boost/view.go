package boost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/core/lane"
)

// ListBoost is all that there is, by name.
func (a *API) ListBoost(ctx context.Context, _ *connect.Request[apiv1.ListBoostRequest]) (*connect.Response[apiv1.ListBoostResponse], error) {
	x, all := a.x, &apiv1.ListBoostResponse{Trust: a.x.Trust}
	err := x.Loop.Ask(ctx, func() {
		for _, name := range slices.Sorted(maps.Keys(x.sites)) {
			s := x.sites[name]
			all.Sites = append(all.Sites, &apiv1.BoostSite{Name: name, Prefixes: s.Prefixes, Agents: s.Agents, Switches: s.Switches})
		}
		for _, name := range slices.Sorted(maps.Keys(x.entries)) {
			all.Entries = append(all.Entries, x.apiEntry(x.entries[name]))
		}
		for _, name := range slices.Sorted(maps.Keys(x.agents)) {
			all.Agents = append(all.Agents, x.apiAgent(x.agents[name]))
		}
	})
	if err != nil {
		return nil, orders.Error(err)
	}
	return connect.NewResponse(all), nil
}

// The states of an entry.
const (
	boosts   = "boosts"
	waits    = "waits"
	over     = "over"
	unserved = "unserved"
)

func (x *Boost) apiEntry(e store.BoostEntry) *apiv1.BoostEntry {
	out := &apiv1.BoostEntry{Name: e.Name, Client: e.Client, Server: e.Server, Port: uint32(e.Port), FromUnixMs: unixMs(e.From), UntilUnixMs: unixMs(e.Until), Accept: lane.Accept(e.AtOnce), Mode: lane.Mode(e.Rewrite)}
	for i := range x.lanes {
		if x.lanes[i].Entry == e.Name {
			out.Lanes = append(out.Lanes, apiLane(&x.lanes[i]))
		}
	}
	lack, nobody := x.unserved[e.Name]
	switch now := x.clock(); {
	case now.Before(e.From):
		out.State = waits
	case !e.Until.IsZero() && !now.Before(e.Until):
		out.State = over
	case x.waiting():
		out.State, out.Why = waits, "the controller has begun a moment ago and waits for agents of before"
	case nobody:
		out.State, out.Why = unserved, lack.why
	default:
		out.State = boosts
		for i := range x.lanes {
			if x.lanes[i].Entry != e.Name {
				continue
			}
			if at := x.unsteered(&x.lanes[i]); at != "" {
				out.State, out.Why = waits, fmt.Sprintf("switch %s has not taken its rules yet: is it connected? (scaffold net switch ls)", at)
			}
		}
	}
	return out
}

func unixMs(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (x *Boost) apiAgent(a *agent) *apiv1.BoostAgent {
	load := a.load
	if a.session == nil {
		load = nil // of before it went: nobody knows how it is now
	}
	out := &apiv1.BoostAgent{
		Name: a.Name, Site: x.siteOf(a.Name), Door: a.Door, State: "here", Version: a.version, SinceUnixMs: unixMs(a.since),
		Sessions: load.GetSessions(), Load: load.GetLoad(), Trunks: load.GetTrunks(),
		Current: a.told != nil && a.applied == a.told.Generation && a.trouble == "", Error: a.trouble,
	}
	if len(a.Doors) > 1 {
		out.Paths = a.Doors[1:]
	}
	out.Switch, out.SwitchPort = x.place(a.Name)
	switch {
	case a.session == nil:
		out.State = "away"
	case a.Draining:
		out.State = "draining"
	}
	if a.session != nil {
		out.Stops = a.stops.Versions()
	}
	for _, t := range out.Trunks {
		out.Sent, out.Resent = out.Sent+t.Sent, out.Resent+t.Resent
	}
	return out
}

// Agents are those of the network, as its health is judged by.
func (x *Boost) Agents() (list []health.Agent) {
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		a := x.agents[name]
		list = append(list, health.Agent{Name: name, Away: a.session == nil, Since: a.since, Error: a.trouble, Version: a.version, Lost: lostWays(a)})
	}
	return list
}

// Entries are those whose connections are to be boosted now.
func (x *Boost) Entries() (list []health.Entry) {
	if x.waiting() {
		return nil // nothing is known yet
	}
	for _, e := range plannedEntries(x.entries) {
		if e.At(x.clock()) {
			lack := x.unserved[e.Name]
			list = append(list, health.Entry{Name: e.Name, Why: lack.why, Since: lack.since})
		}
	}
	return list
}
