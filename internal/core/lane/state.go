package lane

import (
	"net/netip"
	"time"
)

// A Site is where agents serve hosts.
type Site struct {
	Name     string
	Prefixes []netip.Prefix
	Agents   int // how many serve it, here or not
	// Switched: connections come to its agents by rules of switches, which know where an agent is; else the agents are on
	// the way of all packets to and from the hosts.
	Switched bool
}

// An Entry is connections that an operator wants to be boosted.
type Entry struct {
	Name string
	// Client and Server are whose connections they are; Port is the server's, 0 any.
	Client, Server netip.Prefix
	Port           uint16
	// From and Until bound when connections may begin that are boosted; zero: there is no bound.
	From, Until time.Time
	AtOnce      bool // its clients are accepted before the server has answered
	Rewrite     bool // switches write the agents' addresses into its packets
}

// At reports whether connections that begin now are the entry's.
func (e *Entry) At(now time.Time) bool {
	return !now.Before(e.From) && (e.Until.IsZero() || now.Before(e.Until))
}

// An Agent is one as the controller knows it.
type Agent struct {
	Name, Site string
	Here       bool // its stream stands
	Draining   bool
	Seen       bool    // a switch of its site knows at which port it is
	Load       float64 // of what it can carry, 0 to 1
	Names      bool    // it can serve names, and ask for them: its machine is a host of the network
	Rewrites   Family  // for whose connections it can have ports of its own
	Stops      Family  // whose packets its machine does not forward: what is sent there and not carried would end
}

func (a *Agent) usable() bool { return a.Here && !a.Draining }

// A Session is a connection that is boosted.
type Session struct {
	Lane           uint64
	Client, Server netip.AddrPort
	Near, Far      string
}

// A State is all that lanes are planned from.
type State struct {
	Now     time.Time
	Sites   []Site
	Entries []Entry
	Agents  []Agent
	// RTT is how far two agents are apart, by the names of the near and the far one; without: as far as any other.
	RTT    map[[2]string]time.Duration
	Before []Lane // what was planned last
}

// A Lane is a part of an entry's connections, and who carries it.
type Lane struct {
	Number uint64
	Entry  string
	// Of the client's port the lowest Bits bits are Slot.
	Slot           uint16
	Bits           uint8
	Client, Server netip.Prefix
	Port           uint16
	Near           string
	Far            []string // in the order in which the near agent asks them
	Measured       bool     // the way from Near to the first of them was known when it was chosen
	AtOnce         bool     // as its entry
	Named          bool     // of a name: agents serve it, and connect to it, as hosts do
	Rewrite        bool     // as its entry
}

// A Result is what follows from a state.
type Result struct {
	Lanes []Lane // by entry and slot
	// Unserved are entries without a lane, with the reason, in words for an operator.
	Unserved []Unserved
	// Next is when the result changes by itself: an entry begins or ends. Zero: never.
	Next time.Time
}

// Unserved is an entry whose connections pass unboosted.
type Unserved struct{ Entry, Why string }
