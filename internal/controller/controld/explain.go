package controld

import (
	"context"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/explain"
	"scaffold.dev/scaffold/internal/controller/controld/registrations"
	"scaffold.dev/scaffold/sid"
)

// Explain tells why new flows of a service go where they go, and what happened to it and its hosts lately.
func (a *adminAPI) Explain(ctx context.Context, req *connect.Request[apiv1.ExplainRequest]) (*connect.Response[apiv1.ServiceExplanation], error) {
	return get(ctx, a.n, func() (*apiv1.ServiceExplanation, error) {
		r, err := a.n.services.Lookup(req.Msg.Name)
		if err != nil {
			return nil, err
		}
		return a.n.explain.Service(r), nil
	})
}

// newExplain is the network as people want to know it.
func newExplain(n *network) *explain.Network {
	return &explain.Network{
		Plan: n.plan, Services: n.services, Overrides: n.overrides, Access: n.access, Registrations: n.registrations,
		Hosts: seen{n}, Routers: seen{n}, History: n.events, Keyed: func() bool { return n.members.Key() != nil },
	}
}

// seen are the hosts and routers as people want to know them.
type seen struct{ n *network }

func (s seen) Names() []string                    { return slices.Sorted(maps.Keys(s.n.hosts)) }
func (s seen) Locators(host string) []sid.Locator { return s.n.locatorsOf(host) }

func (s seen) Since(host string, t sid.Triple) time.Time {
	return s.n.registrations.Of(host, t).Since
}

func (s seen) Resumes(host string, t sid.Triple) bool {
	return s.n.registrations.Of(host, t).Ready.Resume
}

func (s seen) Refused(host string) (list []explain.Refusal) {
	if h := s.n.hosts[host]; h == nil || !h.Here {
		return nil
	}
	s.n.registrations.Each(host, func(t sid.Triple, r registrations.Registration) {
		if !r.Up && r.Refused != "" {
			list = append(list, explain.Refusal{Triple: t, Why: r.Refused})
		}
	})
	return list
}

func (s seen) Load(host string, t sid.Triple) (flows, acceptQueue uint32) {
	if h := s.n.hosts[host]; h != nil {
		return h.loadOf(t)
	}
	return 0, 0
}

func (s seen) Places(host string) (list []explain.Place) {
	for _, at := range s.n.places.Of(&s.n.hosts[host].Host) {
		list = append(list, explain.Place{Router: at.Router, Port: at.Port, Locator: at.Locator, State: at.State})
	}
	return list
}

func (s seen) Left(host string) (list []explain.Left) {
	for _, r := range s.n.redirects.All() {
		if r.Host == host {
			list = append(list, explain.Left{From: r.From, To: r.To, Leads: r.Leads})
		}
	}
	return list
}

func (s seen) Resolvers() (list []explain.Resolver) {
	for _, name := range s.n.routers.Names() {
		if p := s.n.pushes.Of(name); p.Service {
			list = append(list, explain.Resolver{Name: name, Away: !s.n.routers.Here(name), Behind: !p.Synced || p.Applied < p.Told})
		}
	}
	return list
}
