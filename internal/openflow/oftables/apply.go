package oftables

import (
	"iter"
	"maps"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// Apply takes rules as the planner gives them: a delta, or between Begin and Commit a part of a snapshot. Probes
// are no matter of tables.
func (t *Tables) Apply(r plan.Rules) {
	t.naming.Note(r)
	for _, x := range r.Routes {
		if x.Gone {
			t.removeRoute(x.Prefix)
			continue
		}
		t.setRoute(x)
	}
	for _, x := range r.Redirects {
		t.setRedirect(x)
	}
	for _, x := range r.Gone {
		t.setGone(x)
	}
	for _, x := range r.Services {
		t.setService(x)
	}
	for _, x := range r.Resolutions {
		t.setResolution(x)
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
func (t *Tables) Begin() { t.naming.Begin() }

// Commit ends a snapshot: what it did not name goes. Without a Begin it does nothing.
func (t *Tables) Commit() {
	t.Apply(t.naming.Commit(plan.Held{Routes: maps.Keys(t.routes), Services: maps.Keys(t.services), Triples: t.triples(),
		Redirects: maps.Keys(t.redirects), Gone: maps.Keys(t.gone)}))
}

// triples are those of all services.
func (t *Tables) triples() iter.Seq[sid.Triple] {
	return func(yield func(sid.Triple) bool) {
		for _, s := range t.services {
			for triple := range s.triples {
				if !yield(triple) {
					return
				}
			}
		}
	}
}
