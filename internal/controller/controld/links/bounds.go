package links

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Bounds of what routers say: all of it is kept in memory, and in the store, which would refuse a record of a megabyte.
const (
	maxText      = 256     // of a name, in bytes
	Max          = 1024    // of one router
	maxLinkBytes = 1 << 18 // of all their texts: a record of the store
)

// thatCount is what counts of what a router reports of its links, and what is wrong with the rest. Others may have a hand in
// a report: a router that does not know who is in the network repeats whatever greets it. So only the excess is refused:
// links that their other ends report too come first, then those to routers of the network, then those to routers that may
// join yet; among equals the router's order decides.
func (x *Links) thatCount(r *router, links []*apiv1.Neighbour) (kept []*apiv1.Neighbour, refused error) {
	ranks := [3][]*apiv1.Neighbour{}
	seen := make(map[linkKey]bool, min(len(links), Max))
	count := 0
	refuse := func(format string, args ...any) {
		if count++; count == 1 {
			refused = fmt.Errorf(format, args...)
		}
	}
	for _, l := range links {
		switch {
		case max(len(l.Port), len(l.Peer), len(l.PeerPort), len(l.Via), len(l.Reason)) > maxText:
			refuse("a link with a text of more than %d bytes", maxText)
			continue
		case l.Peer == r.name:
			refuse("a link to itself by port %.40s", l.Port)
			continue
		case seen[keyOf(l)]:
			continue
		}
		peer := x.routers[l.Peer]
		rank := 2
		switch {
		case peer != nil && confirmed(peer, r.name, l):
			rank = 0
		case peer != nil:
			rank = 1
		}
		seen[keyOf(l)] = true
		ranks[rank] = append(ranks[rank], l)
	}
	bytes := 0
	for _, rank := range ranks {
		for _, l := range rank {
			size := len(l.Port) + len(l.Peer) + len(l.PeerPort) + len(l.Via) + len(l.Reason)
			if len(kept) == Max || bytes+size > maxLinkBytes {
				refuse("%d links: at most %d, with %d bytes of text", len(links), Max, maxLinkBytes)
				continue
			}
			kept, bytes = append(kept, l), bytes+size
		}
	}
	if count > 1 {
		refused = fmt.Errorf("%d links, of which one: %w", count, refused)
	}
	return kept, refused
}

// confirmed reports whether the router at the other end of a link says the same pair of ports, where both name them.
func confirmed(peer *router, name string, l *apiv1.Neighbour) bool {
	for _, m := range peer.links {
		if m.Peer == name && (m.PeerPort == "" || l.PeerPort == "" || m.Port == l.PeerPort && m.PeerPort == l.Port) {
			return true
		}
	}
	return false
}
