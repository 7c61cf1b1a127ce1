package hostd

import (
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// guard tells the edge who may connect to a service, then ends the flows of those who may no more.
func (r *registry) guard(id sid.ServiceID, p *apiv1.ServicePolicy) {
	before, now := r.d.edge.Guard(id), guardOf(p.Guard)
	if err := r.d.edge.SetGuard(id, now); err != nil {
		r.d.log.Error("not all who may connect can", "service", p.Name, "error", err)
	}
	if now == nil || before != nil && !slices.ContainsFunc(before, func(p resolve.Prefix) bool { return !slices.Contains(now, p) }) {
		return // nobody lost the right
	}
	r.d.sessions.bar(id, func(l sid.Locator) bool { return now.Bars(before, l) })
}

// guardOf reads who may connect; nil: everybody.
func guardOf(g *apiv1.Guard) resolve.Guard {
	if g == nil {
		return nil
	}
	all := make([]resolve.Prefix, 0, len(g.Allow))
	for _, p := range g.Allow {
		all = append(all, resolve.NewPrefix(sid.Locator(p.Locator), int(min(p.Bits, sid.LocatorBits))))
	}
	return resolve.NewGuard(all)
}

// forbids says who may not go on here with a flow of others.
func (r *registry) forbids(id sid.ServiceID, at sid.Locator) bool {
	return !r.d.edge.Guard(id).Allows(at)
}
