package oftables

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A naming is what a snapshot has named so far; what it has not at its commit is removed.
type naming struct {
	routes    map[netip.Prefix]struct{}
	services  map[sid.ServiceID]struct{}
	triples   map[sid.Triple]struct{}
	redirects map[sid.Locator]struct{}
	gone      map[sid.Locator]struct{}
}

// Apply takes rules as the planner gives them: a delta, or between Begin and Commit a part of a snapshot. Probes
// are no matter of tables.
func (t *Tables) Apply(r plan.Rules) {
	for _, x := range r.Routes {
		if x.Gone {
			t.removeRoute(x.Prefix)
			continue
		}
		t.setRoute(x)
		named(t, func(n *naming) map[netip.Prefix]struct{} { return n.routes }, x.Prefix.Masked())
	}
	for _, x := range r.Redirects {
		t.setRedirect(x)
		if !x.Gone {
			named(t, func(n *naming) map[sid.Locator]struct{} { return n.redirects }, x.From)
		}
	}
	for _, x := range r.Gone {
		t.setGone(x)
		if !x.Back {
			named(t, func(n *naming) map[sid.Locator]struct{} { return n.gone }, x.Locator)
		}
	}
	for _, x := range r.Services {
		t.setService(x)
		if !x.Gone {
			named(t, func(n *naming) map[sid.ServiceID]struct{} { return n.services }, x.Service)
		}
	}
	for _, x := range r.Resolutions {
		t.setResolution(x)
		named(t, func(n *naming) map[sid.Triple]struct{} { return n.triples }, x.Triple)
	}
}

// named remembers what a snapshot says, if one is under way.
func named[K comparable](t *Tables, of func(*naming) map[K]struct{}, k K) {
	if t.naming != nil {
		of(t.naming)[k] = struct{}{}
	}
}

func (t *Tables) setRedirect(x plan.Redirect) {
	if t.redirects[x.From] = x.To; x.Gone {
		delete(t.redirects, x.From)
	}
	t.renderLeft(x.From)
}

func (t *Tables) setGone(x plan.Gone) {
	if t.gone[x.Locator] = struct{}{}; x.Back {
		delete(t.gone, x.Locator)
	}
	t.renderLeft(x.Locator)
}

// Begin begins a snapshot, and forgets one that has not ended.
func (t *Tables) Begin() {
	t.naming = &naming{routes: map[netip.Prefix]struct{}{}, services: map[sid.ServiceID]struct{}{}, triples: map[sid.Triple]struct{}{},
		redirects: map[sid.Locator]struct{}{}, gone: map[sid.Locator]struct{}{}}
}

// Commit ends a snapshot: what it did not name goes. Without a Begin it does nothing.
func (t *Tables) Commit() {
	n := t.naming
	if n == nil {
		return
	}
	t.naming = nil
	var rest plan.Rules
	for p := range t.routes {
		if _, ok := n.routes[p]; !ok {
			rest.Routes = append(rest.Routes, plan.Route{Prefix: p, Gone: true})
		}
	}
	for l := range t.redirects {
		if _, ok := n.redirects[l]; !ok {
			rest.Redirects = append(rest.Redirects, plan.Redirect{From: l, Gone: true})
		}
	}
	for l := range t.gone {
		if _, ok := n.gone[l]; !ok {
			rest.Gone = append(rest.Gone, plan.Gone{Locator: l, Back: true})
		}
	}
	for id, s := range t.services {
		if _, ok := n.services[id]; !ok {
			rest.Services = append(rest.Services, plan.ServiceRule{Service: id, Gone: true})
		}
		for triple := range s.triples {
			if _, ok := n.triples[triple]; !ok {
				rest.Resolutions = append(rest.Resolutions, plan.Resolution{Triple: triple})
			}
		}
	}
	t.Apply(rest)
}
