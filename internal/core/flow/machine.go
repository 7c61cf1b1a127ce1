package flow

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
)

// A Direction is where a packet comes from.
type Direction uint8

// The two sides of the edge.
const (
	FromHost Direction = iota // a local socket sent it
	FromWire                  // it arrived on an uplink
)

// A Packet is an IPv6 packet at the edge. Handle does not keep or change Data.
type Packet struct {
	From      Direction
	Uplink    int
	Forwarded bool   // it only passes through this host
	Dying     bool   // the process behind its socket was killed or failed
	Socket    uint64 // cookie of its socket, 0 if it has none
	Data      []byte
}

// A Verdict is what becomes of a packet.
type Verdict uint8

// The verdicts.
const (
	Pass      Verdict = iota // it goes on, perhaps changed
	Drop                     // it ends here
	SendBack                 // it became an answer, on the link on which it came
	Tell                     // it ends here, and the owner of the machine is to act on it
	Elsewhere                // it leaves by another uplink than the one at hand
	Swallow                  // it ends here, and its sender believes it sent
)

func (v Verdict) String() string {
	return [...]string{"pass", "drop", "send back", "tell", "elsewhere", "swallow"}[v]
}

// An Output is what became of one packet. Reason names the counter of the edge that moves; a packet that
// passes has none.
type Output struct {
	Verdict Verdict
	Reason  string
	Uplink  int // of Elsewhere
	Data    []byte
}

// Datagrams says how a service's datagram flows bind.
type Datagrams uint8

// The ways datagrams bind.
const (
	BoundByReply Datagrams = iota
	Unbound
	Unset
)

// A Policy is what differs for a service.
type Policy struct {
	Datagrams Datagrams
	DSCP      uint8
}

// An Uplink is what packets need to know of the link on which they leave.
type Uplink struct {
	Locator sid.Locator
	MTU     uint16
}

// Config is what a machine cannot know by itself.
type Config struct {
	Space sid.Space
	NewID func() sid.SocketID // unpredictable; see IDs
	Key   [2]uint64           // of marks; see Mark
}

// A Machine is one host's flows. It belongs to one goroutine.
type Machine struct {
	cfg         Config
	told        bool // somebody acts on what it tells
	slots       [slots]slot
	locators    map[sid.Locator]bool
	admitted    map[instance]bool
	services    map[sid.Suffix]*service
	policies    map[netip.Addr]Policy
	bySocket    map[sid.SocketID]*entry
	byTuple     map[tuple]*Conn
	answerPorts map[tuple]*ports // by tuples without the port that was asked
	fragments   map[fragment]rewritten
	retired     map[sid.SocketID]time.Time // what flows gave up
	strays      map[sid.SocketID]time.Time // what nobody knows, since when
	tags        map[uint64]netip.Addr      // services in cookies
	answers     [][]byte                   // to what Steer began again
	out         []Output

	retirements uint64 // of slots
}

type instance struct {
	suffix sid.Suffix
	proto  sid.Proto
	port   uint16
}

// service is what a suffix means on this host.
type service struct {
	upper  sid.Locator // the upper half of the service address
	live   int
	allows func(sid.Locator) bool // who may connect; nil: everybody
}

type fragment struct {
	src, dst netip.Addr
	id       uint32
}

type rewritten struct {
	src, dst netip.Addr
	word     uint32
	slot     int
}

// New returns a machine without uplinks, services and flows.
func New(cfg Config) *Machine {
	return &Machine{
		cfg:         cfg,
		locators:    map[sid.Locator]bool{},
		admitted:    map[instance]bool{},
		services:    map[sid.Suffix]*service{},
		policies:    map[netip.Addr]Policy{},
		bySocket:    map[sid.SocketID]*entry{},
		byTuple:     map[tuple]*Conn{},
		answerPorts: map[tuple]*ports{},
		fragments:   map[fragment]rewritten{},
		retired:     map[sid.SocketID]time.Time{},
		strays:      map[sid.SocketID]time.Time{},
		tags:        map[uint64]netip.Addr{},
	}
}

// Handle takes one packet; its Output is in the next Drain.
func (m *Machine) Handle(now time.Time, in Packet) {
	p, ok := parse(in.Data)
	p.dying, p.socket = in.Dying, in.Socket
	switch {
	case !ok:
		m.pass(in.Data)
	case in.From == FromHost:
		m.fromHost(now, &p, in)
	default:
		m.fromWire(now, &p)
	}
}

// Drain returns the outputs since the last call, in order.
func (m *Machine) Drain() []Output {
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) pass(data []byte) { m.out = append(m.out, Output{Verdict: Pass, Data: data}) }

func (m *Machine) drop(reason string) { m.out = append(m.out, Output{Verdict: Drop, Reason: reason}) }

func (m *Machine) sendBack(reason string, data []byte) {
	m.out = append(m.out, Output{Verdict: SendBack, Reason: reason, Data: data})
}

// tell hands the packet to whoever owns the machine; where nobody acts, refusals pass and messages end.
func (m *Machine) tell(reason string, data []byte, otherwise Verdict) {
	switch {
	case m.told:
		m.out = append(m.out, Output{Verdict: Tell, Reason: reason, Data: data})
	case otherwise == Pass:
		m.out = append(m.out, Output{Verdict: Pass, Reason: "daemon_away", Data: data})
	default:
		m.drop("daemon_away")
	}
}
