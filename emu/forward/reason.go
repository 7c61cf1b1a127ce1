package forward

import "scaffold.dev/scaffold/emu"

// A Reason is why a packet is dropped.
type Reason uint8

// Reasons, and what the sender is told: ICMPv6 type and code, ICMP type and code.
const (
	NoRoute             Reason = iota // 1/0, 3/0
	Rejected                          // by an unreachable route: 1/6, 3/1
	LinkDown                          // the route leads over a link that is down, or a port that does not exist: 1/0, 3/0
	HopLimit                          // 3/0, 11/0
	TooBig                            // for the next link: 2/0 with its MTU, 3/4
	HostUnreachable                   // the neighbour does not answer: 1/3, 3/1
	PortUnreachable                   // a datagram to the router itself: 1/4, 3/3
	ProtocolUnreachable               // something else to the router itself: 4/1, 3/2
	BeyondScope                       // from a link-local address to one beyond the link: 1/2
	Blackholed                        // by a blackhole route; as for all that follow, nobody is told
	Martian                           // from or to an address that no packet beyond a link has
	OtherHost                         // a LAN carried it here, but it is for another
	NotForward                        // multicast, broadcast or link-local, and nothing for the router
	NotIP                             // of another protocol, or malformed
	QueueFull                         // too many wait for the address of a neighbour
	Fragments                         // to the router itself
	Answered                          // a packet for the router itself, or from it, that has done its work
	Starved                           // for lack of memory
	Reasons                           // how many there are
)

var reasonNames = [Reasons]string{
	"no route", "unreachable route", "link down", "hop limit", "too big", "neighbour silent", "port unreachable",
	"protocol unreachable", "beyond scope", "blackhole", "martian", "other host", "not forwarded", "not IP", "queue full",
	"fragments to the router", "answered", "starved",
}

func (r Reason) String() string { return reasonNames[r] }

// refusals are the reasons by kind of adjacency.
var refusals = [...]Reason{
	toNowhere: NoRoute, toBlackhole: Blackholed, toUnknown: NoRoute, toReject: Rejected, toMartian: Martian, toScope: BeyondScope,
	toDown: LinkDown,
}

// A message is what ICMP says for a reason; type 0 is nothing.
type message struct{ type6, code6, type4, code4 uint8 }

var messages = [Reasons]message{
	NoRoute: {1, 0, 3, 0}, Rejected: {1, 6, 3, 1}, LinkDown: {1, 0, 3, 0}, HopLimit: {3, 0, 11, 0}, TooBig: {2, 0, 3, 4},
	HostUnreachable: {1, 3, 3, 1}, PortUnreachable: {1, 4, 3, 3}, ProtocolUnreachable: {4, 1, 3, 2}, BeyondScope: {type6: 1, code6: 2},
}

// Counters count what a forwarder did not pass on. Packets of trains count one by one, messages about them as one.
type Counters struct {
	Drops      [Reasons]uint64 // by reason
	Told       [Reasons]uint64 // ICMP errors sent, by reason
	Limited    uint64          // ICMP errors not sent for their rate
	Mute       uint64          // ICMP errors not sent as the router has no address
	Echoes     uint64          // echo requests answered
	Resets     uint64          // TCP segments answered with a reset
	Solicited  uint64          // neighbours asked for their address
	Answers    uint64          // neighbours told the router's address
	Fragmented uint64          // IPv4 packets taken apart
}

// Counters are the present counters.
func (f *Forwarder) Counters() Counters { return f.counters }

// drop counts a packet that goes nowhere.
func (f *Forwarder) drop(p *emu.Packet, why Reason) {
	f.counters.Drops[why] += uint64(p.Count())
	p.Port = emu.Drop
}

// refuse drops a packet and tells its sender, if that is to be told. What the argument means depends on the message.
func (f *Forwarder) refuse(p *emu.Packet, why Reason, argument uint32) {
	if f.mayTell(p, &messages[why]) {
		f.tell(p, why, argument)
	}
	f.drop(p, why)
}
