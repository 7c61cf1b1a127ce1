package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
)

// piece is how many entries of a snapshot go into one message.
const piece = 1000

// push sends deltas in order, each with a generation of its own, so that a router that reports the
// last one has them all. Routers without a snapshot get one afterwards, which has it all.
func (n *network) push(steps []plan.Step) {
	for _, step := range steps {
		n.generation++
		order := &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: n.rules(step.Rules)}}
		for _, name := range step.Routers {
			if r := n.routers[name]; r.session != nil && r.synced {
				r.told = n.generation
				n.order(r, order)
			}
		}
	}
}

// order sends one message; shared between routers, so read only from here on.
func (n *network) order(r *router, o *apiv1.RouterOrder) bool {
	n.metrics.orders.Inc()
	return r.session.send(o)
}

// snapshot sends everything that the router is to know.
func (n *network) snapshot(r *router) {
	r.synced, r.told = true, n.generation
	n.metrics.snapshots.Inc()
	ok := n.order(r, &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{Begin: &apiv1.SnapshotBegin{Generation: n.generation}}})
	for _, part := range pieces(n.plan.Snapshot(r.Name)) {
		ok = ok && n.order(r, &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: n.rules(part)}})
	}
	if ok {
		n.order(r, &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Commit{Commit: &apiv1.Commit{Generation: n.generation}}})
	}
}

// pieces cuts rules into messages of moderate size, routes first and resolutions last: what is
// resolved can be forwarded.
func pieces(all plan.Rules) []plan.Rules {
	parts := []plan.Rules{{Routes: all.Routes, Probes: all.Probes, Redirects: all.Redirects, Gone: all.Gone}}
	for s := all.Services; len(s) > 0; {
		k := min(piece, len(s))
		parts = append(parts, plan.Rules{Services: s[:k]})
		s = s[k:]
	}
	for s := all.Resolutions; len(s) > 0; {
		k := min(piece, len(s))
		parts = append(parts, plan.Rules{Resolutions: s[:k]})
		s = s[k:]
	}
	return parts
}

func (n *network) rules(r plan.Rules) *apiv1.Rules {
	out := &apiv1.Rules{Generation: n.generation}
	for _, x := range r.Routes {
		out.Routes = append(out.Routes, route(x))
	}
	for _, x := range r.Services {
		out.Services = append(out.Services, &apiv1.ServiceRule{
			Ss: x.Service.SS, Suffix: uint64(x.Service.Suffix), Gone: x.Gone, Instances: x.Instances, Forbidden: x.Forbidden,
		})
	}
	for _, x := range r.Resolutions {
		out.Resolutions = append(out.Resolutions, resolution(x))
	}
	for _, x := range r.Probes {
		out.Probes = append(out.Probes, &apiv1.Probe{Locator: uint64(x.Locator), Port: x.Port, Gone: x.Gone})
	}
	for _, x := range r.Redirects {
		out.Redirects = append(out.Redirects, &apiv1.Redirect{From: uint64(x.From), To: uint64(x.To), Gone: x.Gone})
	}
	for _, x := range r.Gone {
		out.Gone = append(out.Gone, &apiv1.Gone{Locator: uint64(x.Locator), Back: x.Back})
	}
	return out
}

func route(r plan.Route) *apiv1.Route {
	out := &apiv1.Route{Prefix: r.Prefix.String(), Port: r.Port, Gone: r.Gone}
	if r.Via.IsValid() {
		out.Via = r.Via.String()
	}
	if r.MAC != [6]byte{} {
		out.Mac = r.MAC[:]
	}
	return out
}

func resolution(r plan.Resolution) *apiv1.Resolution {
	out := &apiv1.Resolution{
		Ss: r.Triple.Service.SS, Suffix: uint64(r.Triple.Service.Suffix), Proto: uint32(r.Triple.Proto), Port: uint32(r.Triple.Port),
		Targets: make([]*apiv1.Target, 0, len(r.Targets)),
	}
	for _, t := range r.Targets {
		out.Targets = append(out.Targets, &apiv1.Target{Locator: uint64(t.Locator), Weight: t.Weight})
	}
	return out
}

// tellGone lets all other hosts know at once that flows to a host's locators may have lost their peer: those of
// the services, of all where none is named.
func (n *network) tellGone(lost *host, services []*apiv1.ServiceRef, locators ...uint64) {
	order := &apiv1.HostOrder{Order: &apiv1.HostOrder_Gone{Gone: &apiv1.LocatorsGone{Locators: locators, Services: services}}}
	for _, h := range n.hosts {
		if h.session != nil && h != lost {
			h.session.send(order)
		}
	}
}
