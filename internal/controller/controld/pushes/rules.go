package pushes

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/router/agent"
)

// piece is how many entries of a snapshot go into one message.
const piece = 1000

// Push sends deltas in order, each with a generation of its own, so that a router that reports the
// last one has them all. Routers without a snapshot get one afterwards, which has it all.
func (x *Pushes) Push(steps []plan.Step) {
	for _, step := range steps {
		x.generation++
		order := &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: agent.Encode(step.Rules, x.generation)}}
		if len(step.Routers) > 1 {
			order = encoded(order)
		}
		for _, name := range step.Routers {
			if r := x.routers[name]; r.session != nil && r.synced {
				r.told = x.generation
				r.sent(x.generation)
				x.Orders.Inc()
				r.session.Send(order) // shared between routers, so read only from here on
			}
		}
	}
}

// encoded is a message of the same bytes that takes no time to encode again for each router: it has them as fields
// that it does not know.
func encoded(o *apiv1.RouterOrder) *apiv1.RouterOrder {
	b, err := proto.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("pushes: rules cannot be encoded: %v", err)) // they hold names that were checked, and numbers
	}
	e := new(apiv1.RouterOrder)
	e.ProtoReflect().SetUnknown(b)
	return e
}

// Complete sends a router that is here everything that it is to know, unless its session has had that.
func (x *Pushes) Complete(name string) {
	r := x.routers[name]
	if r.session == nil || r.synced {
		return
	}
	r.synced, r.told = true, x.generation
	r.sent(x.generation)
	x.Snapshots.Inc()
	send := func(o *apiv1.RouterOrder) bool {
		x.Orders.Inc()
		return r.session.Send(o)
	}
	ok := send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Begin{Begin: &apiv1.SnapshotBegin{Generation: x.generation}}})
	for _, part := range pieces(x.Plan.Snapshot(name)) {
		ok = ok && send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Rules{Rules: agent.Encode(part, x.generation)}})
	}
	if ok {
		send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Commit{Commit: &apiv1.Commit{Generation: x.generation, Filter: x.Filter()}}})
	}
}

// Anew has Complete send everything once more, to all.
func (x *Pushes) Anew() {
	for _, r := range x.routers {
		r.synced = false
	}
}

// pieces cuts rules into messages of moderate size, routes first and resolutions last: what is
// resolved can be forwarded.
func pieces(all plan.Rules) []plan.Rules {
	parts := []plan.Rules{{Routes: all.Routes, Probes: all.Probes, Redirects: all.Redirects, Gone: all.Gone, Sources: all.Sources}}
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
