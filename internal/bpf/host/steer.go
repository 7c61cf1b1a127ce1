package host

import (
	"errors"
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// A Tuple is a flow as its socket sees it: the key of the egress map. What a datagram flow must ignore is
// zero: the remote port at a client, the local one at a server.
type Tuple struct {
	Local, Remote netip.AddrPort
	Proto         sid.Proto
}

// An Addr is where one end of a flow is.
type Addr struct {
	Locator sid.Locator
	Socket  sid.SocketID
}

// IP is the address as packets carry it.
func (a Addr) IP() netip.Addr { return a.Locator.Addr(uint64(a.Socket)) }

// A Verb says what a Step does to a flow.
type Verb uint8

// The verbs of abi.h.
const (
	// Accept takes packets to Local.Socket for the flow. Peer zero: from any peer address of the AS, until
	// Bind. A socketID that is accepted already only has its peer set.
	Accept Verb = 1 + iota
	// Bind sends from Local to Peer. The newest accepted socketID takes only Peer from now on; older ones
	// keep what they took until Drop. A socketID that is not accepted yet is now.
	Bind
	// Retry makes a connecting client's flow go on under Local.Socket, from Local.Locator. Earlier attempts
	// stay accepted; the one that is answered binds the flow, and an Answered event tells which. It fails
	// when the flow has been answered already: Lookup tells by whom.
	Retry
	// Block takes nothing more and swallows what is sent: the kernel believes it sent. Bind ends it.
	Block
	// Unbind makes a client's datagram flow resolve anew, under Local.Socket; zero: one of the edge's own.
	// All earlier ones are dropped. An Answered event tells when it is bound again.
	Unbind
	// Forget ends the flow: all its socketIDs become unknown.
	Forget
	// Drop ends one former socketID, Local.Socket. What still arrives for it is not answered.
	Drop
)

var verbNames = [...]string{"", "accept", "bind", "retry", "block", "unbind", "forget", "drop"}

func (v Verb) String() string {
	if int(v) < len(verbNames) && v > 0 {
		return verbNames[v]
	}
	return fmt.Sprintf("Verb(%d)", uint8(v))
}

// A Step changes one flow.
type Step struct {
	Verb        Verb
	Flow        Tuple
	Local, Peer Addr
}

// errUnsupported is what this edge answers to what it cannot do.
var errUnsupported = errors.New("host edge: not supported by this edge")

// Steer does the steps in order. Those that fail (the flow is gone, or full is full) are listed by index and
// the others are done all the same; the error says that nothing more could be done at all.
func (e *Edge) Steer(steps []Step) (failed []int, err error) { return nil, errUnsupported }

// Lookup finds one flow by its tuple, also a half-open one.
func (e *Edge) Lookup(t Tuple) (Flow, bool, error) { return Flow{}, false, errUnsupported }

// Send sends a message between host stacks: UDP from port 23727 to port 23727, from an address of ours, out
// of the interface of its locator or, when that is retired, of any. Where to is a service, retry goes into the
// flow label and a service router finds the instance.
func (e *Edge) Send(from, to netip.Addr, retry uint8, payload []byte) error { return errUnsupported }
