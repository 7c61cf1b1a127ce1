package flow

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
)

// A Role is the end at which this host stands.
type Role uint8

// The two ends.
const (
	Client Role = iota + 1
	Server
)

// A State is how far a flow has come, docs/protocol.md §3.
type State uint8

// The states.
const (
	Connecting State = iota // a client's, nobody has answered
	HalfOpen                // a TCP server's, the client has not spoken since the SYN-ACK
	Bound                   // both ends know each other's socketID
	Blocked                 // the peer is gone, the data path stands still
	Lost                    // of a socketID: an attempt to connect that was not the first to be answered
	Closed                  // its socketIDs are nobody's
)

func (s State) String() string {
	return [...]string{"connecting", "half-open", "bound", "blocked", "lost", "closed"}[s]
}

// next lists the legal moves.
var next = map[State][]State{
	Connecting: {Bound, Blocked, Closed},
	HalfOpen:   {Bound, Blocked, Closed},
	Bound:      {Connecting, Blocked, Closed}, // a datagram flow may connect anew
	Blocked:    {Bound, Connecting, Closed},
}

// tuple is a flow as its socket sees it; what it must ignore is zero: a datagram server's local port, because it may
// answer from another one, and a ping's second copy of its identifier.
type tuple struct {
	local, remote netip.Addr
	lport, rport  uint16
	proto         sid.Proto
}

// An entry is one socketID under which a flow is reached.
type entry struct {
	*Conn
	id    sid.SocketID
	peer  netip.Addr // the only source that is accepted once bound; invalid: any peer
	state State
	slot  int // from which an attempt to connect left
	heard time.Time
}

// A Conn is one flow.
type Conn struct {
	ID    sid.SocketID // under which it leaves
	Role  Role
	state State
	tuple
	entries []*entry // the oldest first
	slot    int
	retried bool       // began again by Steer: its answer is told
	steered bool       // no flood evicts it
	peer    netip.Addr // on the wire; the service address until bound
	isn     uint32
	syns    uint8     // that the kernel has sent
	ports   [2]uint16 // the first and the last local port of a datagram server's answers
	policy  Policy
	finOut  bool
	finIn   bool
	rst     bool
	seen    time.Time
	spoke   time.Time // when its socket last sent
	owner   uint64    // cookie of the socket of a client's datagram flow
}

// become changes the state; an illegal move is our bug, never the peer's. Staying is no move.
func (c *Conn) become(s State) {
	if c.state == s {
		return
	}
	if !slices.Contains(next[c.state], s) {
		panic(fmt.Sprintf("flow: %v -> %v", c.state, s))
	}
	c.state = s
}

func clientTuple(p *packet) tuple {
	t := tuple{p.src, p.dst, p.sport, p.dport, p.proto}
	if p.proto == sid.ICMPv6 {
		t.rport = 0
	}
	return t
}

func serverTuple(p *packet) tuple {
	t := tuple{p.src, p.dst, p.sport, p.dport, p.proto}
	if p.proto != sid.TCP {
		t.lport = 0
	}
	return t
}

// begin enters a new flow.
func (m *Machine) begin(now time.Time, p *packet, t tuple, c Conn) *Conn {
	c.ID, c.tuple, c.seen = m.newID(c.Role, t), t, now
	c.isn, c.peer, c.ports = p.seq, p.dst, [2]uint16{p.sport, p.sport}
	if c.Role == Client && p.proto != sid.TCP {
		c.owner = p.socket
	}
	m.byTuple[t] = &c
	m.enter(&c, &entry{id: c.ID, state: c.state, slot: c.slot, heard: now})
	if c.state != Connecting {
		c.entries[0].peer = c.peer
	}
	return &c
}

// enter makes e the flow's newest entry.
func (m *Machine) enter(c *Conn, e *entry) {
	e.Conn = c
	c.entries = append(c.entries, e)
	m.bySocket[e.id] = e
}

// spoken: the client of a half-open flow has.
func (c *Conn) spoken() {
	c.become(Bound)
	c.all(HalfOpen, Bound)
}

// all changes the state of those of its entries that are in another one.
func (c *Conn) all(from, to State) {
	for _, e := range c.entries {
		if e.state == from {
			e.state = to
		}
	}
}

// orphaned: the socket of a datagram flow is gone and another one has its port, which was silent meanwhile:
// sockets that share a port take turns on it.
func (c *Conn) orphaned(now time.Time, socket uint64) bool {
	return c.owner != 0 && socket != 0 && socket != c.owner && now.Sub(c.spoke) >= PortReuse
}

func (m *Machine) end(c *Conn) {
	c.become(Closed)
	for _, e := range c.entries {
		delete(m.bySocket, e.id)
	}
	if m.byTuple[c.tuple] == c {
		delete(m.byTuple, c.tuple)
	}
}

// Flows calls f for each flow until it returns false.
func (m *Machine) Flows(f func(*Conn, State) bool) {
	for _, c := range m.byTuple {
		if !f(c, c.state) {
			return
		}
	}
}
