package forward

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
)

// originate sends a packet of the router's own; to a link-local address by the given port, else by the table.
func (f *Forwarder) originate(ip []byte, port uint16) {
	p, ok := f.router.New(ip)
	if !ok {
		f.counters.Drops[Starved]++
		return
	}
	if p.Near() {
		f.across(&p, port)
	} else {
		f.onward(&p, &f.all[f.lookup(f.router, &p)])
	}
	f.router.Send(p, p.Port)
}

// across sends a packet of the router's own to its destination beyond a port.
func (f *Forwarder) across(p *emu.Packet, port uint16) {
	p.Port = emu.Taken
	if int(port) >= len(f.ports) {
		f.drop(p, NotForward)
		return
	}
	if f.ports[port].lan {
		f.deliver(p, port, destination(f.router.Bytes(p), p))
		return
	}
	p.Routed()
	f.leave(p, port)
}

// near is for packets that no router forwards.
func (f *Forwarder) near(p *emu.Packet) {
	switch {
	case p.IPv6():
		f.near6(p)
	case p.IPv4():
		f.hand(p, NotForward)
	case f.isARP(p):
		f.arp(p)
	default:
		f.hand(p, NotIP)
	}
}

// hand gives a packet to the router's namespace, if there is one.
func (f *Forwarder) hand(p *emu.Packet, why Reason) {
	if !f.handed(p) {
		f.drop(p, why)
	}
}

func (f *Forwarder) handed(p *emu.Packet) bool {
	if p.Port == emu.Taken || f.ports[p.Port].Local() == nil {
		return false
	}
	p.Port = emu.Local(p.Port)
	return true
}

// near6 is for packets to link-local and multicast addresses.
func (f *Forwarder) near6(p *emu.Packet) {
	b := f.router.Bytes(p)
	if b[6] == protoICMP6 && len(b) >= 48 && (b[40] == neighbourSolicitation || b[40] == neighbourAdvertisement) {
		f.discovery(p, b)
		return
	}
	if f.handed(p) {
		return
	}
	to := destination(b, p)
	if b[6] == protoICMP6 && len(b) >= 48 && b[40] == echoRequest6 && (to == f.ports[p.Port].linkLocal || to == allNodes) {
		f.echoNear(p)
		return
	}
	f.drop(p, NotForward)
}

var allNodes = netip.IPv6LinkLocalAllNodes()

const (
	echoRequest6 = 128
	echoReply6   = 129
	echoRequest4 = 8
	echoReply4   = 0
)

// self is for packets to an address of the router.
func (f *Forwarder) self(p *emu.Packet) {
	if p.Port == emu.Taken {
		f.drop(p, Answered)
		return
	}
	if f.handed(p) {
		return
	}
	b := f.router.Bytes(p)
	u := upperOf(b, p)
	switch {
	case u.fragment:
		f.drop(p, Fragments)
	case u.protocol == protoICMP6 && p.IPv6(), u.protocol == protoICMP && p.IPv4():
		f.icmp(p, u)
	case u.protocol == protoUDP:
		f.refuse(p, PortUnreachable, 0)
	case u.protocol == protoTCP:
		f.reset(p, u)
	case u.protocol == protoNoNext && p.IPv6():
		f.drop(p, Answered)
	case p.IPv6():
		f.refuse(p, ProtocolUnreachable, uint32(u.named))
	default:
		f.refuse(p, ProtocolUnreachable, 0)
	}
}

// icmp answers echo requests to an address of the router, and drops the rest.
func (f *Forwarder) icmp(p *emu.Packet, u upper) {
	b := f.router.Bytes(p)
	request := byte(echoRequest4)
	if p.IPv6() {
		request = echoRequest6
	}
	if len(b) < u.at+icmpLen || b[u.at] != request || p.Count() > 1 {
		f.drop(p, Answered)
		return
	}
	if !f.reply(p, u, destination(b, p)) {
		return
	}
	p.Port = emu.Taken
	f.onward(p, &f.all[f.lookup(f.router, p)])
}

// echoNear answers an echo request that came over the link from a neighbour.
func (f *Forwarder) echoNear(p *emu.Packet) {
	in := p.Port
	from := source(f.router.Bytes(p), p)
	if from.IsMulticast() || from.IsUnspecified() {
		f.drop(p, NotForward)
		return
	}
	if f.reply(p, upper{at: 40}, f.ports[in].linkLocal) {
		f.across(p, in)
	}
}

// reply makes an echo request its reply. A wrong checksum stays wrong.
func (f *Forwarder) reply(p *emu.Packet, u upper, from netip.Addr) bool {
	partial := f.router.Checksum(p).Partial
	b, ok := f.router.Edit(p)
	if !ok {
		f.drop(p, Starved)
		return false
	}
	message := b[u.at:]
	before := checksum.Sum(b[8:min(40, len(b))])
	if p.IPv6() {
		copy(b[24:40], b[8:24])
		putAddr(b[8:], from)
		message[0] = echoReply6
	} else {
		var asker [4]byte
		copy(asker[:], b[12:])
		copy(b[12:16], b[16:20])
		copy(b[16:20], asker[:])
		message[0] = echoReply4
	}
	code, after := uint16(message[1]), checksum.Sum(b[8:min(40, len(b))])
	switch {
	case partial && p.IPv6(): // of the pseudo header alone
		binary.BigEndian.PutUint16(message[2:], checksum.Plus(checksum.Plus(binary.BigEndian.Uint16(message[2:]), ^before), after))
	case p.IPv6():
		checksum.Update(message[2:], before, after)
		checksum.Update(message[2:], echoRequest6<<8|code, echoReply6<<8|code)
	case !partial:
		checksum.Update(message[2:], echoRequest4<<8|code, echoReply4<<8|code)
	}
	f.router.Reparse(p)
	p.Hop = ownHops
	f.counters.Echoes++
	return true
}

// reset answers a TCP segment (RFC 9293, 3.10.7.1).
func (f *Forwarder) reset(p *emu.Packet, u upper) {
	b := whole(f.router.Bytes(p), p)
	f.drop(p, Answered)
	if len(b) < u.at+20 || b[u.at+13]&tcpRST != 0 {
		return
	}
	six := p.IPv6()
	head := 20
	if six {
		head = 40
	}
	t, r := b[u.at:], f.scratch[head:head+20]
	clear(r)
	copy(r, t[2:4])
	copy(r[2:], t[:2])
	r[12], r[13] = 5<<4, tcpRST
	if t[13]&tcpACK != 0 {
		copy(r[4:8], t[8:12])
	} else {
		length := uint32(len(t)) - uint32(t[12]>>4)*4 + uint32(t[13]&tcpSYN)>>1 + uint32(t[13]&tcpFIN)
		binary.BigEndian.PutUint32(r[8:], binary.BigEndian.Uint32(t[4:])+length)
		r[13] |= tcpACK
	}
	f.counters.Resets++
	from, to := destination(b, p), source(b, p)
	if six {
		f.originate(f.finish6(from, to, protoTCP, 20, ownHops), emu.Taken)
		return
	}
	packet := f.finish4(from, to, protoTCP, 20)
	binary.BigEndian.PutUint16(r[16:], ^checksum.Fold(checksum.Add(checksum.Pseudo(from, to, protoTCP, 20), r)))
	f.originate(packet, emu.Taken)
}

const (
	tcpFIN = 0x01
	tcpSYN = 0x02
	tcpRST = 0x04
	tcpACK = 0x10
)
