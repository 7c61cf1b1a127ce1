package controld

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/pushes"
	"scaffold.dev/scaffold/internal/trust"
)

// membership is what members are to know of the network: of its hosts and routers, and how they are told.
type membership struct{ n *network }

// HostKey is the key that a host's name is bound to; false where there is no such host.
func (s membership) HostKey(name string) ([]byte, bool) {
	if h := s.n.hosts[name]; h != nil {
		return h.Key, true
	}
	return nil, false
}

// HasRouter reports whether there is a router of that name.
func (s membership) HasRouter(name string) bool {
	_, known := s.n.routers.Of(name)
	return known
}

// HasAgent reports whether there is an agent of boost of that name.
func (s membership) HasAgent(name string) bool { return s.n.boost.Known(name) }

// Needed says who would lose a router.
func (s membership) Needed(router string) error {
	return needed(router, s.n.places.HostsAt(router))
}

// Forget takes a host or router out of the network.
func (s membership) Forget(role trust.Role, name string) {
	switch role {
	case trust.Host:
		s.n.forgetHost(name)
	case trust.Router:
		if s.n.routers.Forget(name) {
			s.sendAway(name)
		}
	case trust.Agent:
		s.n.boost.Forget(name)
	}
}

// ReachedAt is where the controllers are reached.
func (s membership) ReachedAt() []string { return s.n.reachedAt() }

// Settling reports whether it is not known yet who is here.
func (s membership) Settling() bool { return s.n.grace.Settling() }

// TellKeys tells everybody of other keys of the network.
func (s membership) TellKeys() { s.n.tellKeys() }

// TellRevoked tells everybody of keys that count no more.
func (s membership) TellRevoked(list []*apiv1.Revocation) { s.n.tellRevoked(list) }

// Unaware names a host that is here and of a version that knows no successions; "" where there is none.
func (s membership) Unaware() string {
	for _, name := range slices.Sorted(maps.Keys(s.n.hosts)) {
		if h := s.n.hosts[name]; h.session != nil && !h.succeeds {
			return fmt.Sprintf("host %s (version %s)", name, cmp.Or(h.version, "unknown"))
		}
	}
	return ""
}

// Unheard names the hosts that are here and do not know the keys of now.
func (s membership) Unheard() (list []string) {
	for _, h := range s.n.hosts {
		if h.Here && (h.session == nil || h.heard != s.n.members.Edition()) {
			list = append(list, h.Name)
		}
	}
	slices.Sort(list)
	return list
}

// orderly is how members change what is stored, and wait until the routers have applied it.
type orderly struct {
	*orders.Orders
	routers *pushes.Pushes
}

// Await waits until the routers have applied what changed.
func (o orderly) Await(ctx context.Context) { o.routers.Await(ctx) }
