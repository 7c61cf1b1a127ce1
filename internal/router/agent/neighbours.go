package agent

import (
	"cmp"
	"crypto/rand"
	"iter"
	"maps"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// silentTicks is how many HELLO intervals a neighbour may miss; one is forgotten after forgetTicks. Not so one that has
// proved itself at a port whose carrier has been there since: its daemon may be away for hours, or have begun anew while no
// controller tells its key, and its kernel forwards all the while.
const (
	silentTicks = 3
	forgetTicks = 60
)

// Bounds of what is kept of who greets, whoever he is.
const (
	MaxNeighbours = 64 // at a port, of those whose HELLO counts
	maxEnds       = 16 // ports of one router at one of ours, of those that prove who they are
	maxAnswers    = 32 // LINKs in an interval at a port, in answer to HELLOs of routers with which there is no link yet
)

// A NeighbourKey is one link to one router. Two links to the same router differ in the ports.
type NeighbourKey struct {
	Port     string
	Peer     string
	PeerPort string // "" for who is known by his HELLO, and for a configured link
}

// A Neighbour is a router that greets us, or one that the configuration names.
type Neighbour struct {
	Via        netip.Addr  // its address on the port, or the plain router's
	MAC        [6]byte     // that it sends from, where the caller knows it
	Locator    sid.Locator // 0 while unknown
	Configured bool

	peerPort string
	heard    bool // at least once; by a LINK that answers ours where proved
	proved   bool
	out      bool // its cable was, or may have been, since it was heard
	missed   int  // ticks since it was heard
	talk     talk
}

// An Origin is where a message came from.
type Origin struct {
	Port string
	From netip.Addr
	MAC  [6]byte // where it is known
}

// Neighbours count HELLOs and LINKs; like probes they have no clock.
type Neighbours struct {
	name    string
	keys    *LinkKeys
	secret  [32]byte // of the challenges
	tick    uint64
	looking int // ticks until those whose LINKs are to come have had the time
	listed  bool
	all     map[NeighbourKey]*Neighbour
	answers map[string]int // in this tick, by port
	refused map[string]uint64
}

// NewNeighbours knows nobody yet. Name is the router's own.
func NewNeighbours(name string, keys *LinkKeys) *Neighbours {
	n := &Neighbours{name: name, keys: keys, tick: echoTicks, all: map[NeighbourKey]*Neighbour{}, answers: map[string]int{}, refused: map[string]uint64{}}
	rand.Read(n.secret[:]) // never fails (crypto/rand)
	return n
}

// Configure names a router behind a plain one, whose address on the port is via.
func (n *Neighbours) Configure(port, peer string, via netip.Addr) {
	n.all[NeighbourKey{Port: port, Peer: peer}] = &Neighbour{Via: via, Configured: true}
}

// All are the neighbours by port and name. They are not to be changed.
func (n *Neighbours) All() iter.Seq2[NeighbourKey, Neighbour] {
	return func(yield func(NeighbourKey, Neighbour) bool) {
		for _, key := range n.keysSorted() {
			if !yield(key, *n.all[key]) {
				return
			}
		}
	}
}

// Why a HELLO or LINK does not count.
const (
	refusedUnknown = "unknown" // no router of the network is called so
	refusedExcess  = "excess"  // too many at the port
	refusedProof   = "proof"   // not made by the router that it names
	refusedReplay  = "replay"  // heard before
	refusedStale   = "stale"   // answers to nothing that we said here lately
)

// Refusals are all reasons.
var Refusals = []string{refusedUnknown, refusedExcess, refusedProof, refusedReplay, refusedStale}

// Refused is how many HELLOs and LINKs did not count, by reason.
func (n *Neighbours) Refused() map[string]uint64 { return n.refused }

// Heard takes a HELLO; fresh is true where the sender was not known as a live neighbour or changed, answer where it is to
// get a LINK by the key, since its HELLO proves nothing. A HELLO from afar counts for the configured link only.
func (n *Neighbours) Heard(at Origin, h wire.Hello) (fresh bool, key NeighbourKey, answer bool) {
	key = NeighbourKey{Port: at.Port, Peer: h.Name}
	old := n.all[key]
	configured := old != nil && old.Configured
	if h.Name == "" || h.Name == n.name || !at.From.IsLinkLocalUnicast() && !configured {
		return false, key, false
	}
	switch n.keys.standing(h.Name) {
	case unknownRouter:
		n.refused[refusedUnknown]++
		return false, key, false
	case provable:
		if !configured {
			key.PeerPort = h.Port
		}
		return false, key, !n.proven(key) && n.mayAnswer(at.Port)
	}
	if old == nil && n.at(at.Port) >= MaxNeighbours {
		n.refused[refusedExcess]++
		return false, key, false
	}
	now := Neighbour{peerPort: h.Port, Via: at.From, MAC: at.MAC, Locator: h.Locator, heard: true}
	if configured {
		now.Via, now.Configured = old.Via, true
	}
	fresh = n.put(key, now)
	if fresh { // it cannot prove anything any more
		maps.DeleteFunc(n.all, func(k NeighbourKey, nb *Neighbour) bool {
			return k.Port == at.Port && k.Peer == h.Name && nb.proved && k != key
		})
	}
	return fresh, key, false
}

// put takes what was heard just now, and reports whether that is news.
func (n *Neighbours) put(key NeighbourKey, now Neighbour) (fresh bool) {
	old := n.all[key]
	fresh = old == nil || old.missed > silentTicks
	if old != nil {
		was := *old
		was.missed, was.talk, was.out = 0, now.talk, false
		fresh = fresh || now != was
	}
	n.all[key] = &now
	return fresh
}

// at counts those at a port whose HELLO counts.
func (n *Neighbours) at(port string) (count int) {
	for key, nb := range n.all {
		if key.Port == port && !nb.Configured && !nb.talk.begun {
			count++
		}
	}
	return count
}

// Listed takes up what the controller told of who is in the network, after LinkKeys.Take.
func (n *Neighbours) Listed() {
	if n.keys.told() && !n.listed {
		n.listed, n.looking = true, silentTicks+1
	}
}

// Tick counts a HELLO interval and reports whether a neighbour fell silent or was forgotten, or the time to look is over.
func (n *Neighbours) Tick() (changed bool) {
	n.tick++
	clear(n.answers)
	if n.looking > 0 {
		n.looking--
		changed = n.looking == 0
	}
	for key, nb := range n.all {
		if !nb.heard && !nb.talk.begun {
			continue
		}
		nb.missed++
		changed = changed || nb.missed == silentTicks+1
		stays := nb.Configured || nb.proved && !nb.out && n.keys.standing(key.Peer) != unknownRouter
		if nb.missed > forgetTicks && !stays {
			delete(n.all, key)
			changed = true
		}
	}
	return changed
}

// Unplugged notes that a port has no carrier: who was there may be elsewhere when it is back.
func (n *Neighbours) Unplugged(port string) {
	for key, nb := range n.all {
		if key.Port == port {
			nb.out = true
		}
	}
}

// A NeighbourLink is one as it is reported.
type NeighbourLink struct {
	NeighbourKey // PeerPort as the peer says
	Via          netip.Addr
	MAC          [6]byte
	Up           bool
	Reason       string // why it is not up: "hello", "carrier"
}

// Links are those that count, by port and name. A configured one is believed in until its peer was heard once.
func (n *Neighbours) Links(carrier func(port string) bool) (list []NeighbourLink) {
	for _, key := range n.keysSorted() {
		nb := n.all[key]
		standing := n.keys.standing(key.Peer)
		if !nb.Configured && (!nb.heard || standing == unknownRouter) {
			continue
		}
		l := NeighbourLink{NeighbourKey: NeighbourKey{key.Port, key.Peer, nb.peerPort}, Via: nb.Via.WithZone(""), MAC: nb.MAC, Up: true}
		if nb.missed > silentTicks && nb.heard {
			l.Up, l.Reason = false, "hello"
		}
		if !carrier(key.Port) {
			l.Up, l.Reason = false, "carrier"
		}
		list = append(list, l)
	}
	return list
}

// Leads reports whether a router is or was lately attached at a port: one to which none is takes packets of its hosts
// alone (docs/protocol.md §5.4).
func (n *Neighbours) Leads(port string) bool {
	for key, nb := range n.all {
		if key.Port == port && (nb.Configured || nb.heard && n.keys.standing(key.Peer) != unknownRouter) {
			return true
		}
	}
	return false
}

// Settled reports whether all that are there have had the time to prove it.
func (n *Neighbours) Settled() bool { return n.looking == 0 && n.keys.told() == n.listed }

// Report is what the controller is told.
func (n *Neighbours) Report(carrier func(port string) bool) *apiv1.Neighbours {
	r := &apiv1.Neighbours{Partial: n.looking > 0}
	for _, l := range n.Links(carrier) {
		r.Links = append(r.Links, &apiv1.Neighbour{Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: l.Via.String(), Cost: 1, Up: l.Up, Reason: l.Reason})
	}
	return r
}

func (n *Neighbours) keysSorted() []NeighbourKey {
	return slices.SortedFunc(maps.Keys(n.all), func(a, b NeighbourKey) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.PeerPort, b.PeerPort))
	})
}
