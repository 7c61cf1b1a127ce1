// Package controller is for those who extend Scaffold's controller by modules: programs that see packets,
// switches and hosts of a network of OpenFlow switches, and put rules of their own into the switches beside
// Scaffold's.
//
// A [Module] is linked into a controller of one's own, with package scaffold.dev/scaffold/controller/run:
//
//	func main() { run.Main(mymodule.New()) }
//
// Each module has a goroutine of its own, in which all that it asked to hear of is called, one after the
// other; it needs no locks. What it cannot take in time is dropped and counted (packets) or merged (news of
// switches and hosts). A module that panics, or whose call takes longer than [Patience], is stopped: its
// rules are removed, it is named in the events, and the rest of the controller goes on.
//
// Several modules may subscribe to the same packets: each gets its own copy. Where one subscription is part of
// another, a packet goes to the one whose match has more fields.
//
// A panic in a goroutine that a module begins itself, or a loop that takes all memory, is not contained.
//
// A module's rules are its own: they carry cookies of its range, lie in its tables or in a band of table 0,
// and are put back when a switch comes again. It cannot touch rules of Scaffold, of other modules or of
// other controllers. What a module before left in a switch is removed, unless the module is a [Keeper]. By
// [Network.HandleHeld] it hears when a switch has what it wanted, and by [GuardRegister] a rule of table 0 can
// have all others decide about a packet.
//
// A module with a rule for each connection gives them an idle time: the switch takes out those that nothing uses, and the
// module hears of it by [Network.HandleExpired]. By [Network.ChangeFlows] it says what changes alone. A [Subscription] with a
// lease ends with the controller, so that packets of connections that begin then go on and are not lost.
package controller
