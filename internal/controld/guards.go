package controld

import (
	"fmt"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// maxGuard is how many prefixes a host is told of one service: its edge has a table of four times as many.
const maxGuard = 16384

// guards are the lists of those who may connect, as locators. They follow hosts that move.
type guards struct {
	sets  map[sid.ServiceID]resolve.Guard
	edits map[sid.ServiceID]uint64                     // how often a service's set changed, ever
	by    map[names.Allowed]map[sid.ServiceID]struct{} // whose lists name the host, or the service
	stale map[sid.ServiceID]struct{}                   // to be looked at
}

func newGuards() guards {
	return guards{
		sets: make(map[sid.ServiceID]resolve.Guard), edits: make(map[sid.ServiceID]uint64),
		by: make(map[names.Allowed]map[sid.ServiceID]struct{}), stale: make(map[sid.ServiceID]struct{}),
	}
}

// watchGuard notes what a service's list names. It is called with each version of its record.
func (n *network) watchGuard(r names.Record) {
	for _, ids := range n.guards.by {
		delete(ids, r.ID)
	}
	for _, text := range r.Access.Allow {
		a, err := names.ParseAllowed(text)
		if err != nil || text == names.Nobody || a.Prefix.IsValid() {
			continue // prefixes do not move
		}
		if n.guards.by[a] == nil {
			n.guards.by[a] = make(map[sid.ServiceID]struct{})
		}
		n.guards.by[a][r.ID] = struct{}{}
	}
	n.guards.stale[r.ID] = struct{}{}
}

// touchHost makes lists follow a host whose locators change.
func (n *network) touchHost(name string) { n.touchNamed(names.Allowed{Host: name}) }

// touchGuards makes lists follow who serves a service.
func (n *network) touchGuards(id sid.ServiceID) {
	if r, ok := n.names.ByID(id); ok {
		n.touchNamed(names.Allowed{Service: r.Name})
	}
}

func (n *network) touchNamed(a names.Allowed) {
	for id := range n.guards.by[a] {
		n.guards.stale[id] = struct{}{}
	}
}

// moveGuards finds the locators of lists anew, and tells who serves.
func (n *network) moveGuards() {
	if len(n.guards.stale) == 0 {
		return
	}
	kept := make(map[string][]sid.Locator) // a locator stays its host's until nobody can send from it any more
	for l, h := range n.quarantine {
		kept[h.host] = append(kept[h.host], l)
	}
	for id := range n.guards.stale {
		r, ok := n.names.ByID(id)
		if !ok {
			delete(n.guards.sets, id)
			continue
		}
		set := n.guard(r, kept)
		if have, had := n.guards.sets[id]; had == (set != nil) && slices.Equal(have, set) {
			continue
		}
		if n.guards.sets[id] = set; set == nil {
			delete(n.guards.sets, id)
		}
		n.guards.edits[id]++
		for _, h := range n.hosts {
			if _, told := h.told[id]; told {
				n.tellPolicy(h, id)
			}
		}
	}
	clear(n.guards.stale)
}

// guard is a service's list as locators; nil where everybody may connect.
func (n *network) guard(r names.Record, kept map[string][]sid.Locator) resolve.Guard {
	if len(r.Access.Allow) == 0 {
		return nil
	}
	var all []resolve.Prefix
	host := func(name string) {
		for _, l := range append(n.locatorsOf(name), kept[name]...) {
			all = append(all, resolve.NewPrefix(l, sid.LocatorBits))
		}
	}
	for _, text := range r.Access.Allow {
		a, err := names.ParseAllowed(text)
		switch {
		case err != nil || text == names.Nobody:
		case a.Prefix.IsValid():
			all = append(all, resolve.NewPrefix(sid.LocatorOf(a.Prefix.Addr()), a.Prefix.Bits()))
		case a.Service != "":
			if s, err := n.names.Named(a.Service); err == nil {
				n.plan.EachHost(s.ID, host)
			}
		default:
			host(a.Host)
		}
	}
	set := resolve.NewGuard(all)
	if len(set) > maxGuard {
		n.event("service.access", r.Name, fmt.Sprintf("who may connect comes to %d locators, hosts are told the first %d: name a prefix", len(set), maxGuard))
		set = set[:maxGuard]
	}
	return set
}

// locatorsOf are those of a host that is here.
func (n *network) locatorsOf(name string) (list []sid.Locator) {
	if h := n.hosts[name]; h != nil && h.Here {
		for _, p := range h.all() {
			list = append(list, p.Locator)
		}
	}
	return list
}

// edition tells versions of what a host is told of a service apart.
func (n *network) edition(r names.Record) uint64 { return r.Version + n.guards.edits[r.ID] }

func (n *network) apiGuard(id sid.ServiceID) *apiv1.Guard {
	set, ok := n.guards.sets[id]
	if !ok {
		return nil
	}
	g := &apiv1.Guard{}
	for _, p := range set {
		g.Allow = append(g.Allow, &apiv1.LocatorPrefix{Locator: uint64(p.Locator), Bits: uint32(p.Bits)})
	}
	return g
}

// planPolicy is what of a record decides about rules: where nobody may connect, routers say so.
func planPolicy(r names.Record) plan.Policy {
	return plan.Policy{Weight: r.Policy.Weight, Forbidden: slices.Equal(r.Access.Allow, []string{names.Nobody})}
}
