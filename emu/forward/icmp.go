package forward

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
)

// Numbers of protocols.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMP6  = 58
	protoNoNext = 59
)

// How much of a packet fits into an error about it: RFC 4443, 2.4 (c); RFC 1812, 4.3.2.3.
const (
	maxMade = 1280
	quote6  = maxMade - 40 - icmpLen
	quote4  = 576 - 20 - icmpLen
	icmpLen = 8
	ownHops = 64 // hop limit of what the router itself sends
)

// mayTell reports whether an error about a packet may be sent: RFC 4443, 2.4 (e) and (f); RFC 1812, 4.3.2.7 and 4.3.2.8.
func (f *Forwarder) mayTell(p *emu.Packet, m *message) bool {
	if p.Port == emu.Taken || f.router.Frame(p)[0]&1 != 0 {
		return false // the router's own, or to a group of Ethernet
	}
	b := f.router.Bytes(p)
	switch {
	case p.IPv6() && (m.type6 == 0 || !mayTell6(b)), p.IPv4() && (m.type4 == 0 || !mayTell4(b)), !p.IPv6() && !p.IPv4():
		return false
	}
	if !f.bucket.take(f.router.Now()) {
		f.counters.Limited++
		return false
	}
	return true
}

func mayTell6(b []byte) bool {
	if from := binary.BigEndian.Uint64(b[8:]); b[8] == 0xff || b[24] == 0xff || from == 0 {
		return false
	}
	u := upper6(b)
	if u.fragment && !u.first {
		return false
	}
	const redirect = 137
	return u.protocol != protoICMP6 || u.at < len(b) && b[u.at] >= 128 && b[u.at] != redirect
}

func mayTell4(b []byte) bool {
	u := upper4(b)
	if martian4(b[12]) || !u.first {
		return false
	}
	if u.protocol != protoICMP {
		return true
	}
	if u.at >= len(b) {
		return false
	}
	switch b[u.at] {
	case 3, 4, 5, 11, 12: // errors, and redirects
		return false
	}
	return true
}

// tell sends an error about a packet to its sender.
func (f *Forwarder) tell(p *emu.Packet, why Reason, argument uint32) {
	from := f.speaker(p.Port, p.IPv6())
	if !from.IsValid() {
		f.counters.Mute++
		return
	}
	room, m := quote4, &messages[why]
	if p.IPv6() {
		room = quote6
	}
	b, ok := f.quotable(p)
	if !ok {
		f.counters.Drops[Starved]++
		return
	}
	n := min(len(b), room)
	f.counters.Told[why]++
	if p.IPv6() {
		body := f.scratch[40 : 40+icmpLen+n]
		f.fillError(body, m.type6, m.code6, argument, b[:n])
		to := header.IPv6(b).Src()
		f.originate(f.finish6(from, to, protoICMP6, len(body), ownHops), p.Port)
		return
	}
	body := f.scratch[20 : 20+icmpLen+n]
	f.fillError(body, m.type4, m.code4, argument, b[:n])
	binary.BigEndian.PutUint16(body[2:], ^checksum.Sum(body))
	f.originate(f.finish4(from, netip.AddrFrom4([4]byte(b[12:16])), protoICMP, len(body)), p.Port)
}

func (f *Forwarder) fillError(body []byte, kind, code uint8, argument uint32, quote []byte) {
	body[0], body[1], body[2], body[3] = kind, code, 0, 0
	binary.BigEndian.PutUint32(body[4:], argument)
	copy(body[icmpLen:], quote)
}

// quotable are the bytes of a packet as it came, of a train those of its first packet.
func (f *Forwarder) quotable(p *emu.Packet) ([]byte, bool) {
	if p.Count() == 1 && !f.router.Sum(p) {
		return nil, false
	}
	b, ok := f.router.Edit(p)
	if !ok || p.Count() == 1 {
		return whole(b, p), ok
	}
	b = b[:p.Len()]
	if p.IPv6() {
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	} else {
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		head := b[:int(b[0]&15)*4]
		head[10], head[11] = 0, 0
		binary.BigEndian.PutUint16(head[10:], ^checksum.Sum(head))
	}
	if c := f.router.Checksum(p); transport(b, p) == protoUDP && c.Start+6 <= len(b) {
		binary.BigEndian.PutUint16(b[c.Start+4:], uint16(len(b)-c.Start))
	}
	return b, true
}

// dummy4 is the source of ICMP errors of a router without an IPv4 address (RFC 7600, 4.8).
var dummy4 = netip.AddrFrom4([4]byte{192, 0, 0, 8})

// speaker is the address that the router speaks from about a packet that came by a port.
func (f *Forwarder) speaker(port uint16, six bool) netip.Addr {
	if int(port) < len(f.ports) {
		one := &f.ports[port]
		switch {
		case six && one.six.IsValid():
			return one.six
		case !six && one.four.IsValid():
			return one.four
		}
	}
	for _, a := range f.config.Addresses {
		if a.Is6() == six {
			return a
		}
	}
	for i := range f.ports {
		switch one := &f.ports[i]; {
		case six && one.six.IsValid():
			return one.six
		case !six && one.four.IsValid():
			return one.four
		}
	}
	if six {
		return netip.Addr{}
	}
	return dummy4
}

// A bucket limits a rate (the generic cell rate algorithm, ITU-T I.371).
type bucket struct {
	rate     int // a second; less than 0 is none at all
	interval time.Duration
	slack    time.Duration
	full     time.Duration // when it has what it may hold
}

func (b *bucket) set(rate int) {
	if rate == 0 {
		rate = DefaultICMPRate
	}
	*b = bucket{rate: rate}
	if rate > 0 {
		b.interval = time.Second / time.Duration(rate)
		b.slack = b.interval * time.Duration(max(ICMPBurst, rate/20)-1)
	}
}

func (b *bucket) take(now time.Duration) bool {
	full := max(b.full, now)
	if b.rate < 0 || full-now > b.slack {
		return false
	}
	b.full = full + b.interval
	return true
}
