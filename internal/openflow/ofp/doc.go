// Package ofp is the OpenFlow protocol as far as Scaffold speaks it, versions 1.3 (wire 0x04) and 1.5
// (0x06): the messages as Go values, [Message.Append] and [Parse]. It does no I/O; [ParseHeader] lets
// the one who reads a stream cut it into messages.
//
// A [Message] is a version, a transaction id and a [Body]. The bodies do not depend on the version:
// the same [FlowMod] or [GroupMod] is written in the layout of the message's version, and what a
// version cannot say is an error of Append that names it.
//
// Every layout is described once, by a method layout that reads or writes as its codec is told to: the
// two directions cannot disagree. What a peer sent and we do not know (an action, an instruction, a
// match field, a multipart body, a whole message) is kept as bytes in a value of an Other type, so that
// a switch with rules of somebody else can be read back. No bytes make Parse panic, and what it returns
// keeps no reference to them.
//
// The layouts are those of the specifications 1.3.5 and 1.5.1 of the Open Networking Foundation, of its
// extension 230 (bundles in 1.3), and of the extensions of Nicira (registers, resubmit) and Netronome
// (how a select group chooses) as Open vSwitch has them.
package ofp
