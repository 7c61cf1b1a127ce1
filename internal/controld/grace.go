package controld

import "fmt"

// grace is the time after a restart in which no rules are sent. What the routers hold is right until
// somebody says otherwise, and a plan that only half of the hosts have reported to would empty it.
type grace struct {
	hosts   map[string]struct{} // that were here and have not reported yet
	routers map[string]struct{}
	expired bool
}

func (n *network) beginGrace() {
	g := &grace{hosts: make(map[string]struct{}), routers: make(map[string]struct{})}
	for name, h := range n.hosts {
		if h.Here {
			g.hosts[name] = struct{}{}
		}
	}
	for name := range n.routers {
		g.routers[name] = struct{}{}
	}
	n.grace = g
	if g.over(n) {
		return // nobody is waited for
	}
	wait := n.cfg.Grace
	if n.restored != nil {
		wait *= restoredGrace
	}
	n.loop.after(wait, func() { g.expired = true })
}

// over reports whether all have reported or waited long enough, and ends the grace then.
func (g *grace) over(n *network) bool {
	for name := range g.hosts {
		if h := n.hosts[name]; h.session != nil && h.reported || !h.Here {
			delete(g.hosts, name)
		}
	}
	for name := range g.routers {
		if r := n.routers[name]; r.session != nil && r.reported {
			delete(g.routers, name)
		}
	}
	missing := len(g.hosts) + len(g.routers) + n.unclaimed()
	if missing > 0 && !g.expired {
		return false
	}
	n.grace = nil
	if missing > 0 {
		n.event("controller.settle", n.cfg.Name, fmt.Sprintf("rules are sent although %d hosts and %d routers of before the restart have not reported in %v", len(g.hosts), len(g.routers), n.cfg.Grace))
		n.forgetMissing(g)
	}
	return true
}

// forgetMissing treats hosts that did not come back like those whose daemon was away for long. Where a router is back
// and has not said a word about them, it may have come this moment, and they report by it: a switch that this
// controller itself probes for knows nothing yet. They are waited for from now on.
func (n *network) forgetMissing(g *grace) {
	for name := range g.hosts {
		h := n.hosts[name]
		if probed, away := n.witnesses(h); !probed && away == nil {
			n.lease(h)
			continue
		}
		n.leaseOver(h)
	}
}
