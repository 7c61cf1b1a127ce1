package views

import (
	"fmt"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// SortRouters has routers in the order of their names.
func SortRouters(routers []*apiv1.Router) {
	slices.SortFunc(routers, func(x, y *apiv1.Router) int { return strings.Compare(x.Name, y.Name) })
}

// Generation prints the number of a set of rules: the controller's start that made it, and the change
// since that start.
func Generation(g uint64) string { return fmt.Sprintf("%d.%d", g>>32, uint32(g)) }

// Kind says whether the router refines names or only forwards.
func Kind(r *apiv1.Router) string {
	if r.Service {
		return "service"
	}
	return "network"
}
