package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/controller/controld/pushes"
	"scaffold.dev/scaffold/internal/controller/controld/routers"
)

// newPushes are the rules that routers are told, and what that needs of the other rooms.
func newPushes(n *network) *pushes.Pushes {
	return pushes.New(pushes.Config{
		Plan: n.plan, Events: n.events, Loop: n.loop,
		Settling: func() bool { return n.grace.Settling() }, Filter: func() bool { return n.restored == nil },
		Orders: n.metrics.orders, Snapshots: n.metrics.snapshots, Applying: n.metrics.applying,
	})
}

// tellGone lets all other hosts know at once that flows to a host's locators may have lost their peer: those of
// the services, of all where none is named.
func (n *network) tellGone(lost *host, services []*apiv1.ServiceRef, locators ...uint64) {
	order := &apiv1.HostOrder{Order: &apiv1.HostOrder_Gone{Gone: &apiv1.LocatorsGone{Locators: locators, Services: services}}}
	for _, h := range n.hosts {
		if h.session != nil && h != lost {
			h.session.Send(order)
		}
	}
}

// tellControllers lets all daemons know where controllers are.
func (n *network) tellControllers(all *apiv1.Controllers) {
	for _, h := range n.hosts {
		if h.session != nil {
			h.session.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Controllers{Controllers: all}})
		}
	}
	n.routers.Each(func(_ routers.Router, s *routers.Session) {
		s.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Controllers{Controllers: all}})
	})
	n.boost.Each(func(s *boost.Session) {
		s.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Controllers{Controllers: all}})
	})
}
