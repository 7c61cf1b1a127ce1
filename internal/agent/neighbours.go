package agent

import (
	"cmp"
	"iter"
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

// A NeighbourKey is one link to one router. Two links to the same router differ in the port.
type NeighbourKey struct {
	Port string
	Peer string
}

// A Neighbour is a router that greets us, or one that the configuration names.
type Neighbour struct {
	Via        netip.Addr  // its address on the port, or the plain router's
	Locator    sid.Locator // 0 while unknown
	Configured bool

	peerPort string
	heard    bool // at least once
	missed   int  // ticks since the last HELLO
}

// Neighbours count HELLOs; like probes they have no clock.
type Neighbours struct {
	all map[NeighbourKey]*Neighbour
}

// NewNeighbours knows nobody yet.
func NewNeighbours() *Neighbours { return &Neighbours{all: map[NeighbourKey]*Neighbour{}} }

// Configure names a router behind a plain one, whose address on the port is via.
func (n *Neighbours) Configure(key NeighbourKey, via netip.Addr) {
	n.all[key] = &Neighbour{Via: via, Configured: true}
}

// All are the neighbours by port and name. They are not to be changed.
func (n *Neighbours) All() iter.Seq2[NeighbourKey, Neighbour] {
	return func(yield func(NeighbourKey, Neighbour) bool) {
		for _, key := range n.keys() {
			if !yield(key, *n.all[key]) {
				return
			}
		}
	}
}

// Heard takes a HELLO that came to the port; fresh is true where the sender was not known as a live
// neighbour or changed. A HELLO from afar counts for the configured link only.
func (n *Neighbours) Heard(port string, from netip.Addr, h wire.Hello) (fresh bool) {
	key := NeighbourKey{port, h.Name}
	old := n.all[key]
	if !from.IsLinkLocalUnicast() && (old == nil || !old.Configured) {
		return false
	}
	now := Neighbour{peerPort: h.Port, Via: from, Locator: h.Locator, heard: true}
	if old != nil && old.Configured {
		now.Via, now.Configured = old.Via, true
	}
	fresh = old == nil || old.missed > silentTicks || now != old.fresh()
	n.all[key] = &now
	return fresh
}

// fresh is the neighbour as if it had been heard just now.
func (n Neighbour) fresh() Neighbour {
	n.missed = 0
	return n
}

// Tick counts a HELLO interval and reports whether a neighbour fell silent or was forgotten.
func (n *Neighbours) Tick() (changed bool) {
	for key, nb := range n.all {
		if !nb.heard {
			continue
		}
		nb.missed++
		changed = changed || nb.missed == silentTicks+1
		if nb.missed > forgetTicks && !nb.Configured {
			delete(n.all, key)
			changed = true
		}
	}
	return changed
}

// Report is what the controller is told. A configured link is believed in until its peer was heard once.
func (n *Neighbours) Report(carrier func(port string) bool) *apiv1.Neighbours {
	r := &apiv1.Neighbours{}
	for _, key := range n.keys() {
		nb := n.all[key]
		x := &apiv1.Neighbour{Port: key.Port, Peer: key.Peer, PeerPort: nb.peerPort, Via: nb.Via.WithZone("").String(), Cost: 1, Up: true}
		if nb.missed > silentTicks {
			x.Up, x.Reason = false, "hello"
		}
		if !carrier(key.Port) {
			x.Up, x.Reason = false, "carrier"
		}
		r.Links = append(r.Links, x)
	}
	return r
}

func (n *Neighbours) keys() []NeighbourKey {
	return slices.SortedFunc(maps.Keys(n.all), func(a, b NeighbourKey) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Peer, b.Peer))
	})
}
