package switchd

import (
	"maps"
	"slices"
	"sync"

	"scaffold.dev/scaffold/controller"
)

// wishes are what modules want of switches, also of those that are away.
type wishes struct {
	mu    sync.Mutex
	flows map[string]map[owner][]ownFlow
	calls map[string]map[owner]uint64 // how often an owner has said by its own what it wants; not of those that never have
	links map[string]map[owner][]controller.Link
}

func (w *wishes) setFlows(of owner, at string, flows []ownFlow, calls uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set(&w.flows, of, at, flows)
	if calls == 0 {
		return
	}
	if w.calls == nil {
		w.calls = map[string]map[owner]uint64{}
	}
	if w.calls[at] == nil {
		w.calls[at] = map[owner]uint64{}
	}
	w.calls[at][of] = calls
}

func (w *wishes) setLinks(of owner, at string, links []controller.Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set(&w.links, of, at, links)
}

func set[T any](all *map[string]map[owner][]T, of owner, at string, list []T) {
	if *all == nil {
		*all = map[string]map[owner][]T{}
	}
	if (*all)[at] == nil {
		(*all)[at] = map[owner][]T{}
	}
	(*all)[at][of] = slices.Clone(list)
	if len(list) == 0 {
		delete((*all)[at], of)
	}
}

// flowsAt are all that is wanted of one switch, by owner, and how often owners had said so by then.
func (w *wishes) flowsAt(at string) (flows map[owner][]ownFlow, calls map[owner]uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.flows[at]), maps.Clone(w.calls[at])
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
