package forward

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
)

// Neighbour discovery (RFC 4861).
const (
	neighbourSolicitation  = 135
	neighbourAdvertisement = 136
	sourceOption           = 1
	targetOption           = 2
	discoveryLen           = 24 // without options
	discoveryHops          = 255
	isRouter               = 0x80
	isSolicited            = 0x40
	isOverride             = 0x20
)

// discovery is for neighbour solicitations and advertisements.
func (f *Forwarder) discovery(p *emu.Packet, b []byte) {
	if b = whole(b, p); !f.proper(p, b) {
		f.drop(p, NotIP)
		return
	}
	in, target := p.Port, netip.AddrFrom16([16]byte(b[48:64]))
	if b[40] == neighbourAdvertisement {
		if mac, ok := option(b[64:], targetOption); ok {
			f.learn(neighbourKey{target, in}, mac, b[44]&isSolicited != 0)
		}
		f.hand(p, Answered)
		return
	}
	from := header.IPv6(b).Src()
	mac, named := option(b[64:], sourceOption)
	if named && !from.IsUnspecified() {
		f.learn(neighbourKey{from, in}, mac, false)
	}
	if f.handed(p) {
		return
	}
	if target == f.ports[in].linkLocal || f.own[target] {
		if !named {
			mac = [6]byte(f.router.Frame(p)[6:12])
		}
		f.advertise(in, from, mac, target)
	}
	f.drop(p, Answered)
}

// proper reports whether a message came over one link, is whole and says what it must (7.1.1, 7.1.2).
func (f *Forwarder) proper(p *emu.Packet, b []byte) bool {
	if p.Hop != discoveryHops || len(b) < 40+discoveryLen || b[41] != 0 || b[48] == 0xff {
		return false
	}
	if !f.router.Checksum(p).Partial && checksum.Fold(checksum.Add(checksum.Pseudo(source(b, p), destination(b, p), protoICMP6, len(b)-40), b[40:])) != checksum.Good {
		return false
	}
	for o := b[64:]; len(o) > 0; o = o[int(o[1])*8:] {
		if len(o) < 2 || o[1] == 0 || len(o) < int(o[1])*8 {
			return false
		}
	}
	return true
}

// option is the Ethernet address in an option of a proper message.
func option(o []byte, kind byte) (mac [6]byte, ok bool) {
	for ; len(o) >= 8; o = o[int(o[1])*8:] {
		if o[0] == kind && o[1] == 1 {
			return [6]byte(o[2:8]), true
		}
	}
	return mac, false
}

// advertise tells who asked the address of a port; everybody if who asked has no address yet (7.2.4).
func (f *Forwarder) advertise(in uint16, to netip.Addr, mac [6]byte, target netip.Addr) {
	flags := byte(isRouter | isSolicited | isOverride)
	if to.IsUnspecified() {
		to, mac, flags = allNodes, groupMAC(allNodes), isRouter|isOverride
	}
	f.counters.Answers++
	f.discover(in, neighbourAdvertisement, flags, target, to, mac, target, targetOption)
}

// solicit asks for the Ethernet address of a neighbour: itself if it had answered before, else the group that it is in.
func (f *Forwarder) solicit(n *neighbour) {
	f.counters.Solicited++
	if n.key.address.Is4() {
		f.solicit4(n)
		return
	}
	to, mac := n.key.address, n.mac
	if !n.known {
		to = solicitedNode(to)
		mac = groupMAC(to)
	}
	f.discover(n.key.port, neighbourSolicitation, 0, f.ports[n.key.port].linkLocal, to, mac, n.key.address, sourceOption)
}

// discover sends a message of neighbour discovery out of a port.
func (f *Forwarder) discover(port uint16, kind, flags byte, from, to netip.Addr, mac [6]byte, target netip.Addr, option byte) {
	own := f.ports[port].mac
	body := f.scratch[40 : 40+discoveryLen+8]
	clear(body)
	body[0], body[4] = kind, flags
	putAddr(body[8:], target)
	body[24], body[25] = option, 1
	copy(body[26:], own[:])
	packet := f.finish6(from, to, protoICMP6, len(body), discoveryHops)
	f.frame(port, mac, etherIPv6, packet)
}

const (
	etherIPv6 = header.EtherIPv6
	etherARP  = 0x0806
)

// frame sends what an Ethernet frame is to carry, which lies in the scratch memory, out of a port.
func (f *Forwarder) frame(port uint16, to [6]byte, kind uint16, body []byte) {
	var frame [14 + 40 + discoveryLen + 8]byte
	own := f.ports[port].mac
	copy(frame[:], to[:])
	copy(frame[6:], own[:])
	binary.BigEndian.PutUint16(frame[12:], kind)
	n := 14 + copy(frame[14:], body)
	if p, ok := f.router.NewFrame(frame[:n]); ok {
		f.router.Send(p, port)
	}
}

// solicitedNode is the group of an address (RFC 4291, 2.7.1).
func solicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// groupMAC is the Ethernet address of an IPv6 group (RFC 2464, 7).
func groupMAC(a netip.Addr) [6]byte {
	b := a.As16()
	return [6]byte{0x33, 0x33, b[12], b[13], b[14], b[15]}
}
