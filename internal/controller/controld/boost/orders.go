package boost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/names"
)

// An API serves operators. Its methods run in the handlers' goroutines.
type API struct {
	apiv1connect.UnimplementedBoostHandler
	x *Boost
}

// API is the service of the agents, sites and entries.
func (x *Boost) API() *API { return &API{x: x} }

// Bounds of what operators may want: each entry is lanes at agents, and rules at switches later.
const (
	maxEntries  = 4096 // each is compared with each other one
	maxSites    = 128
	maxPrefixes = 32 // of a site; all are compared with each other
)

// SetBoostSite makes a site, or gives one other prefixes and agents.
func (a *API) SetBoostSite(ctx context.Context, req *connect.Request[apiv1.BoostSite]) (*connect.Response[apiv1.BoostSite], error) {
	x, m := a.x, req.Msg
	err := x.Orders.Do(ctx, func() (orders.Change, error) {
		next, err := x.site(m)
		if err != nil {
			return orders.Change{}, err
		}
		was := x.sites[next.Name]
		return orders.Change{
			Records: []store.Change{store.PutBoostSite(next)},
			Effect:  func() { x.setSite(next) },
			Says: []*apiv1.Event{events.Changed(events.New("boost.site", next.Name, "a site of boost was set"),
				&apiv1.FieldChange{Field: "prefixes", From: strings.Join(was.Prefixes, " "), To: strings.Join(next.Prefixes, " ")},
				&apiv1.FieldChange{Field: "agents", From: strings.Join(was.Agents, " "), To: strings.Join(next.Agents, " ")},
				&apiv1.FieldChange{Field: "switches", From: strings.Join(was.Switches, " "), To: strings.Join(next.Switches, " ")})},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(m), nil
}

// site is the record that is asked for, once everything is as it would be with it.
func (x *Boost) site(m *apiv1.BoostSite) (next store.BoostSite, err error) {
	if err := checkName("site", m.Name); err != nil {
		return next, err
	}
	next = store.BoostSite{Name: m.Name, Applied: x.sites[m.Name].Applied}
	if len(m.Agents) == 0 { // what is not said stays
		m.Agents = x.sites[m.Name].Agents
	}
	if len(m.Prefixes) == 0 || len(m.Prefixes) > maxPrefixes {
		return next, invalid("site %q: %d prefixes, expected 1 to %d: which hosts do its agents serve?", m.Name, len(m.Prefixes), maxPrefixes)
	}
	for _, text := range m.Prefixes {
		p, err := lane.ParsePrefix(text)
		if err != nil {
			return next, invalid("site %q: prefix %v", m.Name, err)
		}
		next.Prefixes = append(next.Prefixes, p.String())
	}
	for _, name := range m.Agents {
		if err := checkName("agent", name); err != nil {
			return next, err
		}
		if other := x.siteOf(name); other != "" && other != m.Name {
			return next, fmt.Errorf("%w: agent %s serves site %q: an agent serves one site", orders.ErrConflict, name, other)
		}
		if !slices.Contains(next.Agents, name) {
			next.Agents = append(next.Agents, name)
		}
	}
	switch {
	case m.OnPath && len(m.Switches) > 0:
		return next, invalid("site %q: its agents are on the hosts' way, and it has the switches %v that send them connections: say one of both", m.Name, m.Switches)
	case !m.OnPath && len(m.Switches) == 0:
		m.Switches = x.sites[m.Name].Switches
	}
	if next.Switches, err = checkSwitches(m.Name, m.Switches); err != nil {
		return next, err
	}
	slices.Sort(next.Prefixes)
	slices.Sort(next.Agents)
	if _, known := x.sites[m.Name]; !known && len(x.sites) >= maxSites {
		return next, fmt.Errorf("%w: there are %d sites, as many as there may be", orders.ErrConflict, maxSites)
	}
	with := maps.Clone(x.sites)
	with[next.Name] = next
	return next, check(with, x.entries)
}

func (x *Boost) setSite(s store.BoostSite) {
	x.sites[s.Name], x.stale = s, true
	x.nameSwitches(s)
	x.leaveSwitches()
}

// RemoveBoostSite removes a site that no entry needs.
func (a *API) RemoveBoostSite(ctx context.Context, req *connect.Request[apiv1.RemoveBoostSiteRequest]) (*connect.Response[apiv1.RemoveBoostSiteResponse], error) {
	x, name := a.x, req.Msg.Name
	err := x.Orders.Do(ctx, func() (orders.Change, error) {
		if _, known := x.sites[name]; !known {
			return orders.Change{}, notFound("no site %.80q of boost", name)
		}
		without := maps.Clone(x.sites)
		delete(without, name)
		if err := lane.Check(planned(without), plannedEntries(x.entries)); err != nil {
			return orders.Change{}, fmt.Errorf("%w: an entry needs the site: %w", orders.ErrConflict, err)
		}
		return orders.Change{
			Records: []store.Change{store.DeleteBoostSite(name)},
			Effect: func() {
				delete(x.sites, name)
				x.stale = true
				x.leaveSwitches()
			},
			Says: []*apiv1.Event{events.New("boost.site", name, "a site of boost was removed")},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RemoveBoostSiteResponse{}), nil
}

// AllowBoost adds an entry.
func (a *API) AllowBoost(ctx context.Context, req *connect.Request[apiv1.BoostEntry]) (*connect.Response[apiv1.BoostEntry], error) {
	x, m := a.x, req.Msg
	var answer *apiv1.BoostEntry
	err := x.Orders.Do(ctx, func() (orders.Change, error) {
		next, err := x.entry(m)
		if err != nil {
			return orders.Change{}, err
		}
		return orders.Change{
			Records: []store.Change{store.PutBoostEntry(next)},
			Effect: func() {
				x.entries[next.Name], x.stale = next, true
				x.Flush() // the answer says who carries it
				answer = x.apiEntry(next)
			},
			Says: []*apiv1.Event{events.New("boost.allow", next.Name, "connections are to be boosted",
				"client", next.Client, "server", next.Server, "port", events.Number(next.Port))},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	if answer == nil { // the order had come before
		answer = m
	}
	return connect.NewResponse(answer), nil
}

func (x *Boost) entry(m *apiv1.BoostEntry) (next store.BoostEntry, err error) {
	if err := checkName("entry", m.Name); err != nil {
		return next, err
	}
	if _, known := x.entries[m.Name]; known {
		return next, fmt.Errorf("%w: there is an entry %q: deny it first, or give this one another name", orders.ErrConflict, m.Name)
	}
	if len(x.entries) >= maxEntries {
		return next, fmt.Errorf("%w: there are %d entries, as many as there may be: deny those that are over (scaffold boost ls)", orders.ErrConflict, maxEntries)
	}
	client, err := lane.ParsePrefix(m.Client)
	if err != nil {
		return next, invalid("entry %q: client %v", m.Name, err)
	}
	server, err := lane.ParsePrefix(m.Server)
	if err != nil {
		return next, invalid("entry %q: server %v", m.Name, err)
	}
	if m.Port > 65535 {
		return next, invalid("entry %q: port %d: expected 1 to 65535, or 0 for any", m.Name, m.Port)
	}
	atOnce, err := lane.ParseAccept(m.Accept)
	if err != nil {
		return next, invalid("entry %q: accept %v", m.Name, err)
	}
	rewrite, err := lane.ParseMode(m.Mode)
	if err != nil {
		return next, invalid("entry %q: mode %v", m.Name, err)
	}
	next = store.BoostEntry{
		Name: m.Name, Client: client.String(), Server: server.String(), Port: uint16(m.Port), From: timeOf(m.FromUnixMs), Until: timeOf(m.UntilUnixMs), AtOnce: atOnce, Rewrite: rewrite,
	}
	with := maps.Clone(x.entries)
	with[next.Name] = next
	return next, check(x.sites, with)
}

func timeOf(unixMs int64) time.Time {
	if unixMs == 0 {
		return time.Time{}
	}
	return time.UnixMilli(unixMs).UTC()
}

// DenyBoost takes an entry away.
func (a *API) DenyBoost(ctx context.Context, req *connect.Request[apiv1.DenyBoostRequest]) (*connect.Response[apiv1.DenyBoostResponse], error) {
	x, name := a.x, req.Msg.Name
	err := x.Orders.Do(ctx, func() (orders.Change, error) {
		if _, known := x.entries[name]; !known {
			return orders.Change{}, notFound("no entry %.80q of boost", name)
		}
		return orders.Change{
			Records: []store.Change{store.DeleteBoostEntry(name)},
			Effect:  func() { delete(x.entries, name); x.stale = true },
			Says:    []*apiv1.Event{events.New("boost.deny", name, "connections are not to be boosted any more; those that are go on")},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.DenyBoostResponse{}), nil
}

// DrainBoostAgent has an agent take no more connections, or takes that back.
func (a *API) DrainBoostAgent(ctx context.Context, req *connect.Request[apiv1.DrainBoostAgentRequest]) (*connect.Response[apiv1.BoostAgent], error) {
	x, m := a.x, req.Msg
	err := x.Orders.Do(ctx, func() (orders.Change, error) {
		of := x.agents[m.Name]
		if of == nil {
			return orders.Change{}, notFound("no agent %.80q of boost", m.Name)
		}
		next, text := of.BoostAgent, "agent takes no more connections; those that it carries go on"
		if next.Draining = !m.Undrain; m.Undrain {
			text = "agent takes connections again"
		}
		return orders.Change{
			Records: []store.Change{store.PutBoostAgent(next)},
			Effect: func() {
				of.Draining, x.stale = next.Draining, true
				if x.agents[m.Name] == of { // it may have joined from another door while this was saved
					x.Saver.Later(store.PutBoostAgent(of.BoostAgent))
				} else {
					x.Saver.Later(store.DeleteBoostAgent(m.Name))
				}
			},
			Says: []*apiv1.Event{events.New("boost.drain", m.Name, text)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	var answer *apiv1.BoostAgent
	err = x.Loop.Ask(ctx, func() {
		if of := x.agents[m.Name]; of != nil {
			answer = x.apiAgent(of)
		}
	})
	if err == nil && answer == nil {
		err = notFound("agent %s is gone", m.Name)
	}
	if err != nil {
		return nil, orders.Error(err)
	}
	return connect.NewResponse(answer), nil
}

// check looks at all that is wanted together.
func check(sites map[string]store.BoostSite, entries map[string]store.BoostEntry) error {
	if err := lane.Check(planned(sites), plannedEntries(entries)); err != nil {
		return invalid("%w", err)
	}
	return nil
}

func checkName(what, name string) error {
	if clean, err := names.Clean(name, ""); err != nil || clean != name {
		return invalid("%s name %.80q: want letters, digits and hyphens, in lower case", what, name)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

func notFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}
