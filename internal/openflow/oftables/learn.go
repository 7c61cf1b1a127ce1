package oftables

import (
	"fmt"
	"maps"
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A reading is what a switch has of ours.
type reading struct {
	flows   map[flowKey]entry
	groups  map[ofp.GroupID]group
	meters  map[ofp.MeterID]meter
	foreign map[flowKey]struct{} // others' entries
}

func read(flows []ofp.Flow, groups []ofp.GroupDesc, meters []ofp.Meter) reading {
	r := reading{map[flowKey]entry{}, map[ofp.GroupID]group{}, map[ofp.MeterID]meter{}, map[flowKey]struct{}{}}
	for _, f := range flows {
		m := canonical(f.Match)
		key := flowKey{f.Table, f.Priority, text(m)}
		if f.Cookie&cookieMask != cookieOurs {
			r.foreign[key] = struct{}{}
			continue
		}
		r.flows[key] = entry{f.Cookie, m, f.Instructions, f.IdleTimeout, f.HardTimeout}
	}
	for _, g := range groups {
		if ours(uint32(g.ID)) {
			r.groups[g.ID] = readGroup(g)
		}
	}
	for _, m := range meters {
		if ours(uint32(m.ID)) {
			r.meters[m.ID] = readMeter(m)
		}
	}
	return r
}

// Learn makes what was read back from the switch what it was told: the next Drain is the difference to what it
// should hold, and nothing where there is none. What others have there is left alone, also where it is in the place
// of an entry of ours.
func (t *Tables) Learn(flows []ofp.Flow, groups []ofp.GroupDesc, meters []ofp.Meter) {
	r := read(flows, groups, meters)
	for owner := range t.keeping {
		t.Keep(owner)
	}
	t.setAside(&r, true)
	t.flows.learn(r.flows)
	t.groups.learn(r.groups)
	t.meters.learn(r.meters)
	t.foreign = r.foreign
	t.had = map[flowKey]entry{}
	for key, e := range r.flows {
		if key.table == t.table(tableRoutes) {
			t.had[key] = e
		}
	}
	for p, route := range t.routes {
		if t.nextHop(route) == (ofp.MAC{}) {
			t.renderRoute(p)
		}
	}
}

// mostDifferences bounds what Verify says.
const mostDifferences = 20

// Verify says for people what is different at the switch from what it was told; nil: nothing.
func (t *Tables) Verify(flows []ofp.Flow, groups []ofp.GroupDesc, meters []ofp.Meter) []string {
	r := read(flows, groups, meters)
	t.setAside(&r, false)
	var all []string
	all = append(all, differences(t.lasting(r.flows), r.flows, entry.same, func(k flowKey, e entry) string {
		return fmt.Sprintf("flow in table %d, priority %d, %v", k.table, k.priority, e.match)
	})...)
	all = append(all, differences(maps.Collect(t.groups.told()), r.groups, group.same, func(id ofp.GroupID, _ group) string {
		return fmt.Sprintf("group %#x", uint32(id))
	})...)
	all = append(all, differences(maps.Collect(t.meters.told()), r.meters, meter.same, func(id ofp.MeterID, _ meter) string {
		return fmt.Sprintf("meter %#x", uint32(id))
	})...)
	for k, e := range t.flows.wanted() {
		if _, is := r.foreign[k]; is {
			all = append(all, fmt.Sprintf("flow in table %d, priority %d, %v: somebody else's is in the place of ours", k.table, k.priority, e.match))
		}
	}
	slices.Sort(all)
	if n := len(all); n > mostDifferences {
		all = append(all[:mostDifferences:mostDifferences], fmt.Sprintf("and %d more", n-mostDifferences))
	}
	return all
}

func differences[K comparable, V any](told, has map[K]V, same func(V, V) bool, name func(K, V) string) (all []string) {
	for k, v := range told {
		switch got, ok := has[k]; {
		case !ok:
			all = append(all, name(k, v)+": missing")
		case !same(v, got):
			all = append(all, name(k, v)+": other than it was told")
		}
	}
	for k, v := range has {
		if _, ok := told[k]; !ok {
			all = append(all, name(k, v)+": it was not told so")
		}
	}
	return all
}
