package controller

import (
	"errors"

	"scaffold.dev/scaffold/internal/ofp"
)

// ErrStopped is what a module gets that was stopped.
var ErrStopped = errors.New("the module is stopped")

// A Subscription says which packets a module wants to see.
type Subscription struct {
	Name   string // tells it from the module's others; at a switch it replaces one of the same name
	Switch string // "": all, also those that come
	Match  Match  // as of a rule in table 0; empty: none
	Rate   uint32 // packets a second that a switch may punt, 0: 1000; what is more is dropped there
	Copy   bool   // the packet also goes on as if nobody had subscribed
	First  bool   // also packets that Scaffold's own rules would take
}

// A Packet that a switch punted.
type Packet struct {
	Switch string
	Port   string // that it came in by
	Number ofp.Port
	Data   []byte // Ethernet frame; the module's own
}

// An Out is a packet for a switch to send.
type Out struct {
	In      ofp.Port // as if it had come from there; 0: from the controller
	Actions []Action
	Data    []byte // Ethernet frame
}

// A Flow is a rule of a module.
type Flow struct {
	Table        uint8  // 0, or one of the module's own
	Priority     uint16 // up to MaxPriority
	First        bool   // in table 0: before Scaffold's own rules; else behind them
	Match        Match
	Instructions []Instruction
}

// MaxPriority is the highest of a module's rules.
const MaxPriority = 0x1fff

// The terms of OpenFlow rules, as package ofp of Scaffold has them: matches, instructions and actions.
type (
	Match       = ofp.Match       // what a packet must be; empty: any
	OXM         = ofp.OXM         // one field of a match, with or without a mask
	Field       = ofp.Field       // which field
	Instruction = ofp.Instruction // what happens at a match
	Action      = ofp.Action      // what is done to a packet
	Output      = ofp.Output      // sends it out of a port
	SetField    = ofp.SetField    // writes a field
	DecTTL      = ofp.DecTTL      // takes one off the hop limit
	PushVLAN    = ofp.PushVLAN    // puts a VLAN tag on
	PopVLAN     = ofp.PopVLAN     // takes it off
	GotoTable   = ofp.GotoTable   // goes on in a later table
)
