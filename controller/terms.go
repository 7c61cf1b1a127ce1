package controller

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// The terms of OpenFlow rules, as package ofp of Scaffold has them: matches, instructions and actions.
type (
	Match         = ofp.Match         // what a packet must be; empty: any
	OXM           = ofp.OXM           // one field of a match, with or without a mask
	Field         = ofp.Field         // which field
	MAC           = ofp.MAC           // hardware address
	PortNumber    = ofp.Port          // of a switch
	Instruction   = ofp.Instruction   // what happens at a match
	ApplyActions  = ofp.ApplyActions  // does actions at once
	WriteActions  = ofp.WriteActions  // has actions done at the end
	ClearActions  = ofp.ClearActions  // takes them back
	WriteMetadata = ofp.WriteMetadata // for a later table to match
	GotoTable     = ofp.GotoTable     // goes on in a later table of the module's
	Action        = ofp.Action        // what is done to a packet
	Output        = ofp.Output        // sends it out of a port
	SetField      = ofp.SetField      // writes a field
	CopyField     = ofp.CopyField     // copies one
	DecTTL        = ofp.DecTTL        // takes one off the hop limit
	SetTTL        = ofp.SetTTL        // sets it
	SetQueue      = ofp.SetQueue      // chooses the port's queue
	PushVLAN      = ofp.PushVLAN      // puts a VLAN tag on
	PopVLAN       = ofp.PopVLAN       // takes it off
	Resubmit      = ofp.Resubmit      // Open vSwitch's: looks it up in a table of the module's, and goes on; see GuardRegister
)

// GuardRegister is the register by whose bits rules of table 0 may resubmit a packet to table 0, so that all other rules decide
// about it as if this one was not there: the rule's match has a bit of it that is 0, UintMasked(Reg(GuardRegister), 0, bit),
// and its actions set that bit before the Resubmit. So no packet comes to the rule twice. In all rules of modules bits of this
// register can be set to 1 and not to 0 (by SetField; not by CopyField), so that rules which give way to each other come to an
// end. Modules that match the same bit give way together: take another for each.
//
// Open vSwitch alone has registers. A SetField with a mask needs OpenFlow 1.5; before, set all bits.
const GuardRegister = 3

// Apply is short for the instructions of a flow that only does actions; without any it drops the packet.
func Apply(actions ...Action) []Instruction { return ofp.Apply(actions...) }

// Uint is the field with that value; bits that do not fit in it are cut off.
func Uint(f Field, v uint64) OXM { return ofp.Uint(f, v) }

// UintMasked is Uint of which only the bits that mask has count.
func UintMasked(f Field, v, mask uint64) OXM { return ofp.UintMasked(f, v, mask) }

// Addr is the field with that address, which must be of its family: it panics if it is not.
func Addr(f Field, a netip.Addr) OXM { return ofp.Addr(f, a) }

// Prefix is the field with any address of a prefix of its family.
func Prefix(f Field, p netip.Prefix) OXM { return ofp.Prefix(f, p) }

// HW is the field with that hardware address.
func HW(f Field, m MAC) OXM { return ofp.HW(f, m) }

// Bytes is the field with that value, and with mask unless it is nil. It panics if their sizes are not the
// field's.
func Bytes(f Field, value, mask []byte) OXM { return ofp.Bytes(f, value, mask) }
