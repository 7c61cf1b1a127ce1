package forward

import (
	"errors"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
)

// A kind of adjacency.
type kind uint8

const (
	toNowhere   kind = iota // there is no route
	toSelf                  // to the router itself
	toBlackhole             // dropped
	toUnknown               // what the lookup returned does not exist
	toReject                // dropped, and the sender told
	toMartian               // from or to an address that no packet beyond a link has
	toScope                 // from a link-local address to one beyond the link
	toDown                  // beyond a port that is down, or not there
	toWire                  // one neighbour beyond a port
	toLAN                   // one of several neighbours beyond a port
	toGroup                 // one of several adjacencies
)

// An adjacency is where packets go. Eight bytes, so that a router's few lie in a line or two of the cache.
type adjacency struct {
	fits uint16 // length of packets that need nothing but to be sent to the port; 0 while there are none
	port uint16
	more uint16 // of toLAN its own number, of toGroup that of the group
	kind kind
}

// A target is what else is known of an adjacency.
type target struct {
	hop  NextHop
	refs int // routes and groups that use it
}

const (
	maxGroup = 1024 // next hops of a route
	maxPort  = emu.MaxPorts
	maxHops  = 1 << 16
)

// adjacencies are all that a router has, by number of [fib.Hop].
type adjacencies struct {
	all     []adjacency
	targets []target // beside all
	groups  []group
	free    []fib.Hop
	places  map[NextHop]fib.Hop
	sets    map[string]fib.Hop
	spare   []uint16 // of groups
}

// Adjacencies that are always there, beside those of package fib.
const (
	rejectHop = fib.First + iota // of unreachable routes
	martianHop
	scopeHop
	firstHop // of those that are made
)

func newAdjacencies() adjacencies {
	a := adjacencies{places: map[NextHop]fib.Hop{}, sets: map[string]fib.Hop{}}
	for _, k := range []kind{toNowhere, toSelf, toBlackhole, toUnknown, toReject, toMartian, toScope} {
		a.all, a.targets = append(a.all, adjacency{kind: k}), append(a.targets, target{refs: 1})
	}
	return a
}

var errFull = errors.New("the router has 65,536 adjacencies, as many as there can be")

// take returns a number for a new adjacency.
func (a *adjacencies) take(one adjacency, t target) (fib.Hop, error) {
	if n := len(a.free); n > 0 {
		h := a.free[n-1]
		a.free = a.free[:n-1]
		a.all[h], a.targets[h] = one, t
		return h, nil
	}
	if len(a.all) == maxHops {
		return 0, errFull
	}
	a.all, a.targets = append(a.all, one), append(a.targets, t)
	return fib.Hop(len(a.all) - 1), nil
}

// place is the adjacency of a next hop, with one more user.
func (a *adjacencies) place(n NextHop) (h fib.Hop, fresh bool, err error) {
	if h, ok := a.places[n]; ok {
		a.targets[h].refs++
		return h, false, nil
	}
	if h, err = a.take(adjacency{kind: toDown}, target{n, 1}); err != nil {
		return 0, false, err
	}
	a.places[n] = h
	return h, true, nil
}

// release gives up one use of an adjacency.
func (a *adjacencies) release(h fib.Hop) {
	if h < firstHop {
		return
	}
	t := &a.targets[h]
	if t.refs--; t.refs > 0 {
		return
	}
	if a.all[h].kind == toGroup {
		a.dissolve(h)
	} else {
		delete(a.places, t.hop)
	}
	a.all[h], a.targets[h] = adjacency{kind: toUnknown}, target{}
	a.free = append(a.free, h)
}
