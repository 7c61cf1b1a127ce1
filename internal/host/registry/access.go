package registry

import (
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// setAccess tells the edge who may connect to a service, then ends the flows of those who may no more.
func (r *Registry) setAccess(id sid.ServiceID, p *apiv1.ServicePolicy) {
	before, now := r.edge.Access(id), accessOf(p.Access)
	if err := r.edge.SetAccess(id, now); err != nil {
		r.cfg.Log.Error("not all who may connect can", "service", p.Name, "error", err)
	}
	if now == nil || before != nil && !slices.ContainsFunc(before, func(p resolve.Prefix) bool { return !slices.Contains(now, p) }) {
		return // nobody lost the right
	}
	r.cfg.Flows.Bar(id, func(l sid.Locator) bool { return now.Bars(before, l) })
}

// accessOf reads who may connect; nil: everybody.
func accessOf(g *apiv1.AccessList) resolve.AccessList {
	if g == nil {
		return nil
	}
	all := make([]resolve.Prefix, 0, len(g.Allow))
	for _, p := range g.Allow {
		all = append(all, resolve.NewPrefix(sid.Locator(p.Locator), int(min(p.Bits, sid.LocatorBits))))
	}
	return resolve.NewAccessList(all)
}

// Forbids says who may not go on here with a flow of others.
func (r *Registry) Forbids(id sid.ServiceID, at sid.Locator) bool {
	return !r.edge.Access(id).Allows(at)
}
