package answers

import (
	"maps"
	"slices"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A lazyTable is laid out when the first packet asks: most tables change more often than a packet is punted.
type lazyTable struct {
	targets []plan.Target
	table   resolve.Table
	made    bool
}

func (t *lazyTable) pick(k uint64) (sid.Locator, bool) {
	if !t.made {
		targets := make([]resolve.Target, len(t.targets))
		for i, x := range t.targets {
			targets[i] = resolve.Target(x)
		}
		t.table, _ = resolve.New(targets) // what the planner never says leaves an empty one
		t.made = true
	}
	return t.table.Pick(k)
}

// namedRules are what a snapshot has named so far; what it has not at its commit is removed.
type namedRules struct {
	services  map[sid.ServiceID]bool
	tables    map[sid.Triple]bool
	redirects map[sid.Locator]bool
	gone      map[sid.Locator]bool
}

// Begin begins a snapshot.
func (a *Answers) Begin() {
	a.naming = &namedRules{services: map[sid.ServiceID]bool{}, tables: map[sid.Triple]bool{}, redirects: map[sid.Locator]bool{}, gone: map[sid.Locator]bool{}}
}

// Commit ends a snapshot.
func (a *Answers) Commit() {
	n := a.naming
	if n == nil {
		return
	}
	a.naming, a.ready = nil, true
	for _, id := range slices.Collect(maps.Keys(a.services)) {
		if !n.services[id] {
			a.removeService(id)
		}
	}
	for _, t := range slices.Collect(maps.Keys(a.tables)) {
		if !n.tables[t] {
			a.setTable(t, nil)
		}
	}
	maps.DeleteFunc(a.redirects, func(l, _ sid.Locator) bool { return !n.redirects[l] })
	maps.DeleteFunc(a.gone, func(l sid.Locator, _ bool) bool { return !n.gone[l] })
}

// Apply takes rules over, of a snapshot or as a change.
func (a *Answers) Apply(r plan.Rules) {
	for _, x := range r.Redirects {
		a.applyRedirect(x)
	}
	for _, x := range r.Gone {
		a.applyGone(x)
	}
	for _, x := range r.Resolutions {
		a.applyResolution(x)
	}
	for _, x := range r.Services {
		a.applyService(x)
	}
}

func (a *Answers) applyRedirect(x plan.Redirect) {
	if x.Gone {
		delete(a.redirects, x.From)
		return
	}
	if a.naming != nil {
		a.naming.redirects[x.From] = true
	}
	a.redirects[x.From] = x.To
}

func (a *Answers) applyGone(x plan.Gone) {
	if x.Back {
		delete(a.gone, x.Locator)
		return
	}
	if a.naming != nil {
		a.naming.gone[x.Locator] = true
	}
	a.gone[x.Locator] = true
}

func (a *Answers) applyResolution(x plan.Resolution) {
	if a.naming != nil {
		a.naming.tables[x.Triple] = true
	}
	if old := a.tables[x.Triple]; old == nil || !slices.Equal(old.targets, x.Targets) {
		a.setTable(x.Triple, x.Targets)
	}
}

func (a *Answers) setTable(t sid.Triple, targets []plan.Target) {
	if old := a.tables[t]; old != nil && t.Port != 0 {
		a.instances -= len(old.targets)
	}
	delete(a.tables, t)
	if len(targets) > 0 {
		a.tables[t] = &lazyTable{targets: targets}
	}
	if t.Port != 0 {
		a.instances += len(targets)
	}
}

func (a *Answers) applyService(x plan.ServiceRule) {
	if x.Gone {
		a.removeService(x.Service)
		return
	}
	if a.naming != nil {
		a.naming.services[x.Service] = true
	}
	if a.services[x.Service] == x {
		return // a name that others share its suffix with keeps what it has
	}
	a.services[x.Service] = x
	a.short[x.Service.Suffix] = x.Service
}

func (a *Answers) removeService(id sid.ServiceID) {
	if _, ok := a.services[id]; !ok {
		return
	}
	delete(a.services, id)
	delete(a.short, id.Suffix)
}
