package controld

import (
	"fmt"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/places"
)

// A router that is forgotten may be one that somebody else has now. So nothing of it counts from then on, whoever is
// attached at it: not its link key, not its links, not its block. Its hosts look for another router.

// maxNamed is how many hosts an answer names.
const maxNamed = 8

// needed says who would lose his router.
func needed(router string, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	names := hosts
	if len(names) > maxNamed {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", len(hosts)-maxNamed))
	}
	return fmt.Errorf("%w: router %s is the way into the network for %s: attach them at another one first, or cut them off from it with `scaffold router forget %s --force`", orders.ErrConflict, router, andList(names), router)
}

// andList is names as a sentence has them.
func andList(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// sendAway has the hosts at a router that is forgotten look for another one. To them it is as if they had been unplugged
// there. What they have elsewhere they keep: they come again at once, without this one.
func (s membership) sendAway(router string) {
	for _, host := range s.n.places.Forget(router) {
		if h := s.n.hosts[host]; h.session != nil {
			h.session.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: &apiv1.Refused{Retry: true, Reason: places.WasForgotten(router), NoRouter: router}}})
		}
	}
}
