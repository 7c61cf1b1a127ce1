package controld

import (
	"scaffold.dev/scaffold/internal/controller/controld/grace"
)

// newGrace is the time in which those of before a restart are waited for.
func newGrace(n *network) *grace.Grace {
	return grace.New(grace.Config{
		Controller: n.cfg.Name, For: n.cfg.Grace, Hosts: awaited{n}, Routers: returning{n}, Events: n.events, Loop: n.loop,
	})
}

// awaited are the hosts that there were before.
type awaited struct{ n *network }

func (a awaited) Here() (list []string) {
	for name, h := range a.n.hosts {
		if h.Here {
			list = append(list, name)
		}
	}
	return list
}

func (a awaited) Waited(host string) bool {
	h := a.n.hosts[host]
	return h != nil && h.Here && (h.session == nil || !h.reported)
}

func (a awaited) Unclaimed() int { return a.n.places.Unclaimed() }

// Missed treats a host that did not come back like one whose daemon was away for long, but for two. Where a router is back
// and has not said a word about it, it may have come this moment: a switch that this controller itself probes for knows
// nothing yet. And a switch that is not back tries again after ever longer pauses; that its neighbours do not hear it says
// nothing, for it greets them by this controller.
func (a awaited) Missed(host string) {
	h := a.n.hosts[host]
	probed, away := a.n.places.Witnesses(&h.Host)
	router, _ := a.n.routers.Of(away)
	switch {
	case !probed && router.Switch:
		a.n.leaseFor(h, a.n.cfg.SwitchLease)
	case !probed && away == "":
		a.n.lease(h)
	default:
		a.n.leaseOver(h)
	}
}

// returning are the routers that there were before.
type returning struct{ n *network }

func (r returning) Names() []string { return r.n.routers.Names() }

func (r returning) Waited(router string) bool {
	x, known := r.n.routers.Of(router)
	return known && (!x.Here || !x.Reported)
}
