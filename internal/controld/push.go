package controld

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/agent"
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
		order := &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: agent.Encode(step.Rules, n.generation)}}
		if len(step.Routers) > 1 {
			order = encoded(order)
		}
		for _, name := range step.Routers {
			if r := n.routers[name]; r.session != nil && r.synced {
				r.told = n.generation
				r.sent(n.generation)
				n.order(r, order)
			}
		}
	}
}

// encoded is a message of the same bytes that takes no time to encode again for each router: it has them as fields
// that it does not know.
func encoded(o *apiv1.RouterOrder) *apiv1.RouterOrder {
	b, err := proto.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("controld: rules cannot be encoded: %v", err)) // they hold names that were checked, and numbers
	}
	e := new(apiv1.RouterOrder)
	e.ProtoReflect().SetUnknown(b)
	return e
}

// order sends one message; shared between routers, so read only from here on.
func (n *network) order(r *router, o *apiv1.RouterOrder) bool {
	n.metrics.orders.Inc()
	return r.session.send(o)
}

// snapshot sends everything that the router is to know.
func (n *network) snapshot(r *router) {
	r.synced, r.told = true, n.generation
	r.sent(n.generation)
	n.metrics.snapshots.Inc()
	ok := n.order(r, &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{Begin: &apiv1.SnapshotBegin{Generation: n.generation}}})
	for _, part := range pieces(n.plan.Snapshot(r.Name)) {
		ok = ok && n.order(r, &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: agent.Encode(part, n.generation)}})
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
