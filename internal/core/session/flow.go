package session

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A Role is the end at which this host stands.
type Role uint8

// The two ends.
const (
	Client Role = iota + 1
	Server
)

// A Key names this host's end of a flow: a host may hold both ends of one.
type Key struct {
	Stable netip.Addr // the client's first wire address
	Role   Role
}

// An Addr is where one end of a flow is.
type Addr struct {
	Locator sid.Locator
	Socket  sid.SocketID
}

// IP is the address as packets carry it.
func (a Addr) IP() netip.Addr { return a.Locator.Addr(uint64(a.Socket)) }

// AddrOf is the inverse of IP.
func AddrOf(ip netip.Addr) Addr { return Addr{sid.LocatorOf(ip), sid.SocketID(sid.Low(ip))} }

// A State is how far the end has come, docs/protocol.md §6.1.
type State uint8

// The states.
const (
	Connecting State = iota // no peer yet
	Bound                   // the peer knows our address
	Moving                  // the peer has not taken our last move
	Answering               // the peer does not know the socketID that we took when it moved
	Blocked                 // the peer is gone; the data path is being read
	Asking                  // an unresolved RSYN is out
	Confirming              // an instance answered it and is to make the flow
	Closed                  // reset, unbound or ended
)

var stateNames = [...]string{"Connecting", "Bound", "Moving", "Answering", "Blocked", "Asking", "Confirming", "Closed"}

func (s State) String() string { return stateNames[s] }

// next lists the legal moves; TestModelHasTheStatesAndMovesOfTheCode compares it with model/*.pml.
var next = map[State][]State{
	Connecting: {Bound, Moving, Answering, Closed},
	Bound:      {Moving, Answering, Blocked, Closed},
	Moving:     {Bound, Answering, Blocked, Closed},
	Answering:  {Bound, Moving, Blocked, Closed},
	Blocked:    {Asking, Closed},
	Asking:     {Confirming, Closed},
	Confirming: {Bound, Moving, Answering, Asking, Closed},
}

// A Flow is what the caller knows of one end.
type Flow struct {
	Key
	Proto    sid.Proto
	Service  sid.ServiceID
	Continue bool // the policy at the client's end: another instance may go on with it
	Local    Addr
	Peer     Addr // zero while connecting
}

// flow is one end. What it sends is its own address, ordered by (epoch, seen).
type flow struct {
	Flow
	serial uint64
	state  State
	open   *int   // of the engine: flows that wait for an answer to a claim
	seek   *int   // of the engine: flows that look for an instance
	epoch  uint32 // moves of this end
	seen   uint32 // the last epoch of the peer that we took

	peerSeen uint32   // the last epoch of ours that the peer took
	peerKey  wire.Key // zero while the peer has proved nothing

	chain     []sid.SocketID // ours since the peer last confirmed one, that one first
	confirmed sid.Locator    // of ours, the last that the peer confirmed
	old       []retired
	send      Addr // where data is sent from

	timer time.Time // of the state, or of probing while bound; zero when unarmed
	wait  time.Duration
	tries int
	waits int    // times that the timer was put off: see patient
	nonce uint64 // of the probe that is out, 0 without

	transport wire.Transport
	turn      bool // it has waited for its turn to ask
	asked     int  // unresolved RSYNs and RACKs of this failover
	forbidden bool // an instance said that this client may not connect

	endNotice *endNotice // of an end that this host gave up
}

// retired is an address of ours that is still accepted; until is zero while the peer may know no newer one.
type retired struct {
	Addr
	until time.Time
}

// become changes the state; an illegal move is our bug, never the peer's. Staying is no move.
func (f *flow) become(s State) {
	if f.state == s {
		return
	}
	if !slices.Contains(next[f.state], s) {
		panic(fmt.Sprintf("session: %v -> %v", f.state, s))
	}
	f.count(-1)
	f.state = s
	f.count(1)
}

// count keeps the engine's numbers of flows that wait for an answer.
func (f *flow) count(by int) {
	switch f.state {
	case Moving, Answering:
		if f.open != nil {
			*f.open += by
		}
	case Asking, Confirming:
		if f.seek != nil {
			*f.seek += by
		}
	}
}

// owns reports whether s is what this end is or was called, and not forgotten.
func (f *flow) owns(s sid.SocketID) bool {
	return s == f.Local.Socket || slices.ContainsFunc(f.old, func(r retired) bool { return r.Socket == s })
}

// standing is the state that follows from what the two ends know of each other.
func (f *flow) standing() State {
	switch {
	case f.peerSeen < f.epoch:
		return Moving
	case len(f.chain) > 0:
		return Answering
	}
	return Bound
}
