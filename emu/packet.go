package emu

// A Packet is a descriptor of 16 bytes; the bytes themselves lie still in the memory of a shard. It stands for
// one packet, or for packets of a train that the kernel handed over with one header and that travel together.
type Packet struct {
	slot   uint32 // where its bytes lie
	first  uint16 // of the packets of a train
	count  uint16 // packets, 1 if it is no train
	length uint16 // bytes from the IP header on, of the largest packet of a train

	// Port is the number of the port by which the packet came. A program replaces it by where the packet
	// goes: another port's number, Drop, Taken, or what Local makes of it.
	Port uint16
	// Class is the destination's class (package fib), 0 for not known. It is the program's to set, and stays with
	// the packet from router to router.
	Class uint16
	// Hop is the hop limit of IPv6, the time to live of IPv4. It is written into the packet when it leaves.
	Hop   uint8
	flags uint8
}

// Where packets may go besides ports.
const (
	MaxPorts        = 1 << 14 // of a router
	Drop     uint16 = 0xffff  // nowhere
	Taken    uint16 = 0xfffe  // the program keeps it, for [Router.Send] or [Router.Release]
	local    uint16 = 0x8000
)

// Local is the value of Port for a packet that came by a port and is for the router's own namespace.
func Local(port uint16) uint16 { return local | port }

// Flags of a packet.
const (
	flagParsed = 1 << iota // the others hold
	flagIPv4
	flagIPv6
	flagNear   // no router forwards it: not IP, or to a link-local or multicast address
	flagRouted // its Ethernet header is to be written anew
	flagTrain  // its bytes are described by the frame in the slot
	flagFirst  // on a line: there was nothing to send before it
)

// IPv6 reports whether it is a packet of IPv6.
func (p *Packet) IPv6() bool { return p.flags&flagIPv6 != 0 }

// IPv4 reports whether it is a packet of IPv4.
func (p *Packet) IPv4() bool { return p.flags&flagIPv4 != 0 }

// Near reports that no router forwards the packet: it is not of IP, or to a link-local or multicast address.
func (p *Packet) Near() bool { return p.flags&flagNear != 0 }

// Fast reports that the packet is one that routers forward: of IP, to an address beyond the link, with a hop limit
// that allows it.
func (p *Packet) Fast() bool { return p.flags&flagNear == 0 && p.Hop > 1 }

// Len is the packet's length from the IP header on, in bytes; of a train, that of its largest packet.
func (p *Packet) Len() int { return int(p.length) }

// Count is how many packets it stands for, 1 unless it is a train.
func (p *Packet) Count() int { return int(p.count) }
