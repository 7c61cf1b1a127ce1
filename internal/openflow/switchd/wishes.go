package switchd

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"scaffold.dev/scaffold/controller"
)

// wishes are what modules want of switches, also of those that are away.
type wishes struct {
	mu    sync.Mutex
	flows map[string]map[owner]*wished
	links map[string]map[owner][]controller.Link
}

// A wished is what one owner wants of one switch.
type wished struct {
	flows   map[ruleKey]ownFlow
	calls   uint64              // how often the owner has said by its own what it wants
	changed map[ruleKey]ownFlow // since the switch's tables took it: as it was put in or taken out last
	whole   bool                // all of it may have changed
}

// mostChanges is how many changes are noted one by one for a switch that does not take them: it may be away.
const mostChanges = 4096

func (w *wishes) setFlows(of owner, at string, flows []ownFlow, calls uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.wished(of, at)
	x.flows = make(map[ruleKey]ownFlow, len(flows))
	for _, f := range flows {
		x.flows[keyOf(f.Flow)] = f
	}
	x.calls, x.whole, x.changed = max(x.calls, calls), true, nil
}

func (w *wishes) changeFlows(of owner, at string, set, unset []ownFlow, calls uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.wished(of, at)
	x.calls = max(x.calls, calls)
	for _, f := range unset {
		key := keyOf(f.Flow)
		delete(x.flows, key)
		x.note(key, f)
	}
	for _, f := range set {
		key := keyOf(f.Flow)
		x.flows[key] = f
		x.note(key, f)
	}
}

func (x *wished) note(key ruleKey, f ownFlow) {
	if x.whole {
		return
	}
	if x.changed[key] = f; len(x.changed) > mostChanges {
		x.whole, x.changed = true, nil
	}
}

func (w *wishes) wished(of owner, at string) *wished {
	if w.flows == nil {
		w.flows = map[string]map[owner]*wished{}
	}
	if w.flows[at] == nil {
		w.flows[at] = map[owner]*wished{}
	}
	x := w.flows[at][of]
	if x == nil {
		x = &wished{flows: map[ruleKey]ownFlow{}, changed: map[ruleKey]ownFlow{}}
		w.flows[at][of] = x
	}
	return x
}

// sorted are all flows, those with numbers in their order: by it switches give them what is scarce, after a restart as before.
func (x *wished) sorted() []ownFlow {
	return slices.SortedFunc(maps.Values(x.flows), func(a, b ownFlow) int { return cmp.Compare(a.ID, b.ID) })
}

// A wishNews is what has changed of an owner's wishes since somebody asked.
type wishNews struct {
	set, unset []ownFlow
	whole      bool   // set is all
	calls      uint64 // as in wished
}

func (n wishNews) none() bool { return !n.whole && len(n.set)+len(n.unset) == 0 }

// news are what has changed of an owner's wishes since the last time. They are asked for, not carried to the switch: so they
// have no order that could be mixed up on the way.
func (w *wishes) news(of owner, at string) (n wishNews) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.flows[at][of]
	if x == nil {
		return n
	}
	n.calls, n.whole = x.calls, x.whole
	if x.whole {
		n.set = x.sorted()
	}
	for key, f := range x.changed {
		if now, wanted := x.flows[key]; wanted {
			n.set = append(n.set, now)
		} else {
			n.unset = append(n.unset, f)
		}
	}
	x.whole, x.changed = false, map[ruleKey]ownFlow{}
	return n
}

// flowsAt are all that is wanted of one switch, by owner, and how often owners had said so by then; not of those that never
// have.
func (w *wishes) flowsAt(at string) (flows map[owner][]ownFlow, calls map[owner]uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	flows, calls = map[owner][]ownFlow{}, map[owner]uint64{}
	for of, x := range w.flows[at] {
		if len(x.flows) > 0 {
			flows[of] = x.sorted()
		}
		if x.calls > 0 {
			calls[of] = x.calls
		}
	}
	return flows, calls
}

func (w *wishes) setLinks(of owner, at string, links []controller.Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.links == nil {
		w.links = map[string]map[owner][]controller.Link{}
	}
	if w.links[at] == nil {
		w.links[at] = map[owner][]controller.Link{}
	}
	w.links[at][of] = slices.Clone(links)
	if len(links) == 0 {
		delete(w.links[at], of)
	}
}

// linksAt is what all owners together say of a switch's links.
func (w *wishes) linksAt(at string) (all []controller.Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range slices.Sorted(maps.Keys(w.links[at])) {
		all = append(all, w.links[at][of]...)
	}
	return all
}
