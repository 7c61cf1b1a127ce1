package fib

import (
	"fmt"
	"net/netip"
)

// A Hop says what a router does with a packet: one of the values below, or the number of one of its adjacencies.
type Hop uint16

// Hops that are no adjacency.
const (
	None      Hop = 0 // no route
	Local     Hop = 1 // to the router itself
	Blackhole Hop = 2 // dropped, and nobody told
	Again     Hop = 3 // the packet's class is out of date: ask [Classes.Class6] or [Classes.Class4] anew
	First     Hop = 4 // the lowest number of an adjacency
)

func (h Hop) String() string {
	switch h {
	case None:
		return "none"
	case Local:
		return "local"
	case Blackhole:
		return "blackhole"
	case Again:
		return "again"
	}
	return fmt.Sprintf("adjacency %d", uint16(h))
}

// A Route sends what a prefix holds to a hop, unless a longer prefix holds it too.
type Route struct {
	Prefix netip.Prefix
	Hop    Hop
}

// check says what is wrong with a route that somebody wants in a table.
func (r Route) check() error {
	switch {
	case !r.Prefix.IsValid():
		return fmt.Errorf("route to %v: the prefix is not valid; expected an address and a length that fits it", r.Prefix)
	case r.Hop == Again:
		return fmt.Errorf("route to %v: hop 3 is reserved for classes that are out of date; adjacencies begin at %d", r.Prefix, First)
	}
	return nil
}
