package controller

import (
	"errors"
	"time"
)

// ErrStopped is what a module gets that was stopped.
var ErrStopped = errors.New("the module is stopped")

// A Subscription says which packets a module wants to see.
type Subscription struct {
	Name   string // tells it from the module's others of the same Switch; it replaces one of the same name
	Switch string // "": all, also those that come
	Match  Match  // as of a rule in table 0; empty: none, which takes the subscription back
	Rate   uint32 // packets a second that a switch may punt, 0: 1000; what is more is dropped there
	Copy   bool   // the packet also goes on as if nobody had subscribed
	First  bool   // also packets that Scaffold's own rules would take
	// Lease is after how long the rule that punts goes by itself once the controller has stopped renewing it: packets then go
	// on as if nobody had subscribed. 0: it stays. Whole seconds, 2 s or more. Who shares the rule, asking for the same packets,
	// has the longest lease, or none where one has none.
	Lease time.Duration
}

// A Packet that a switch punted.
type Packet struct {
	Switch string
	Port   string // that it came in by
	Number PortNumber
	Data   []byte // Ethernet frame; the module's own
}

// An Out is a packet for a switch to send.
type Out struct {
	In      PortNumber // as if it had come from there; 0: from the controller
	Actions []Action
	Data    []byte // Ethernet frame
}

// A Flow is a rule of a module. It can do what concerns the packet alone: groups and meters are Scaffold's, and
// what is to be punted is for Subscribe to say.
type Flow struct {
	Table        uint8  // 0, or one of the module's own
	Priority     uint16 // up to MaxPriority
	First        bool   // in table 0: before Scaffold's own rules; else behind them
	Match        Match
	Instructions []Instruction
	// Idle is after how long without a packet the switch takes the rule out by itself; see HandleExpired. 0: never. Whole
	// seconds, 1 s to 65535 s.
	Idle time.Duration
}

// MaxPriority is the highest of a module's rules.
const MaxPriority = 0x1fff
