package routerd

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// silentTicks is how many HELLO intervals a neighbour may miss; one is forgotten after forgetTicks.
const (
	silentTicks = 3
	forgetTicks = 60
)

// A neighbourKey is one link to one router. Two links to the same router differ in the port.
type neighbourKey struct {
	port string
	peer string
}

// A neighbour is a router that greets us, or one that the configuration names.
type neighbour struct {
	peerPort   string
	via        netip.Addr  // its address on the port, or the plain router's
	locator    sid.Locator // 0 while unknown
	configured bool
	heard      bool // at least once
	missed     int  // ticks since the last HELLO
}

// neighbours counts HELLOs; like probes it has no clock.
type neighbours struct {
	all map[neighbourKey]*neighbour
}

func newNeighbours(links []Link) *neighbours {
	n := &neighbours{all: map[neighbourKey]*neighbour{}}
	for _, l := range links {
		n.all[neighbourKey{l.Port, l.Peer}] = &neighbour{via: l.Via, configured: true}
	}
	return n
}

// heard takes a HELLO that came to the port; fresh is true where the sender was not known as a live
// neighbour or changed. A HELLO from afar counts for the configured link only.
func (n *neighbours) heard(port string, from netip.Addr, h wire.Hello) (fresh bool) {
	key := neighbourKey{port, h.Name}
	old := n.all[key]
	if !from.IsLinkLocalUnicast() && (old == nil || !old.configured) {
		return false
	}
	now := neighbour{peerPort: h.Port, via: from, locator: h.Locator, heard: true}
	if old != nil && old.configured {
		now.via, now.configured = old.via, true
	}
	fresh = old == nil || old.missed > silentTicks || now != neighbour{old.peerPort, old.via, old.locator, old.configured, old.heard, 0}
	n.all[key] = &now
	return fresh
}

// tick counts a HELLO interval and reports whether a neighbour fell silent or was forgotten.
func (n *neighbours) tick() (changed bool) {
	for key, nb := range n.all {
		if !nb.heard {
			continue
		}
		nb.missed++
		changed = changed || nb.missed == silentTicks+1
		if nb.missed > forgetTicks && !nb.configured {
			delete(n.all, key)
			changed = true
		}
	}
	return changed
}

// report is what the controller is told. A configured link is believed in until its peer was heard once.
func (n *neighbours) report(carrier func(port string) bool) *apiv1.Neighbours {
	r := &apiv1.Neighbours{}
	for _, key := range n.keys() {
		nb := n.all[key]
		x := &apiv1.Neighbour{Port: key.port, Peer: key.peer, PeerPort: nb.peerPort, Via: nb.via.WithZone("").String(), Cost: 1, Up: true}
		if nb.missed > silentTicks {
			x.Up, x.Reason = false, "hello"
		}
		if !carrier(key.port) {
			x.Up, x.Reason = false, "carrier"
		}
		r.Links = append(r.Links, x)
	}
	return r
}

func (n *neighbours) keys() []neighbourKey {
	return slices.SortedFunc(maps.Keys(n.all), func(a, b neighbourKey) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.peer, b.peer))
	})
}
