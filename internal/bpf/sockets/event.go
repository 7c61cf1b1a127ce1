package sockets

import (
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// A Kind says what happened to a socket.
type Kind uint8

// The kinds of events. Lost means that the ring was full and events are missing: Dump tells what is. CaughtUp answers
// Flush.
const (
	Register   Kind = 1
	Unregister Kind = 2
	Lost       Kind = 3
	CaughtUp   Kind = 4
)

func (k Kind) String() string {
	switch k {
	case Register:
		return "register"
	case Unregister:
		return "unregister"
	case Lost:
		return "lost"
	case CaughtUp:
		return "caught up"
	}
	return "unknown"
}

// A Why says how a socket came to serve no longer.
type Why uint8

// The ways in which a socket ends to serve.
const (
	Closed    Why = 1 // the last close, also by a process that dies
	Shutdown  Why = 2 // shutdown() of a listener
	Connected Why = 3 // a datagram socket connected
)

func (w Why) String() string {
	switch w {
	case Closed:
		return "closed"
	case Shutdown:
		return "shut down"
	case Connected:
		return "connected"
	}
	return ""
}

// An Event is one socket that began or ceased to serve. The cookie names the socket for its life and
// is the one that sock_diag shows.
type Event struct {
	Kind     Kind
	Why      Why
	Cookie   uint64
	Proto    sid.Proto
	Addr     netip.Addr
	Port     uint16 // host order
	PID      uint32 // of the process that bound it; 0 where unknown
	Comm     string
	ExitCode int32 // wait(2) status of the process whose death closed it; -1 otherwise
}
