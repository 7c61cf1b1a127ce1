package answers

import (
	"maps"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A lazyTable is laid out when the first packet asks: most tables change more often than a packet is punted.
type lazyTable struct {
	targets []resolve.Target
	table   resolve.Table
	made    bool
}

// choose says whom a packet goes to, and with which label.
func (t *lazyTable) choose(src netip.Addr, label sid.Label, silent map[sid.Locator]bool) (sid.Locator, sid.Label, resolve.Outcome) {
	if !t.made {
		t.table, _ = resolve.New(t.targets) // what the planner never says leaves an empty one
		t.made = true
	}
	return t.table.ChoosePast(src, label, func(l sid.Locator) bool { return silent[l] })
}

// Begin begins a snapshot.
func (a *Answers) Begin() { a.naming.Begin() }

// Commit ends a snapshot: what it did not name goes.
func (a *Answers) Commit() {
	if !a.naming.Under() {
		return
	}
	a.ready = true
	a.Apply(a.naming.Commit(plan.Held{Services: maps.Keys(a.services), Triples: maps.Keys(a.tables), Redirects: maps.Keys(a.redirects), Gone: maps.Keys(a.gone)}))
}

// Apply takes rules over, of a snapshot or as a change.
func (a *Answers) Apply(r plan.Rules) {
	a.naming.Note(plan.Rules{Services: r.Services, Resolutions: r.Resolutions, Redirects: r.Redirects, Gone: r.Gone})
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
	a.redirects[x.From] = x.To
}

func (a *Answers) applyGone(x plan.Gone) {
	if x.Back {
		delete(a.gone, x.Locator)
		return
	}
	a.gone[x.Locator] = true
}

func (a *Answers) applyResolution(x plan.Resolution) {
	if old := a.tables[x.Triple]; old == nil || !slices.Equal(old.targets, x.Targets) {
		a.setTable(x.Triple, x.Targets)
	}
}

func (a *Answers) setTable(t sid.Triple, targets []resolve.Target) {
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
