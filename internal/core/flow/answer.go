package flow

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/checksum"
	"scaffold.dev/scaffold/sid"
)

// quoteMax is how much of a refused packet its refusal quotes.
const quoteMax = 128

// header makes an IPv6 header for n bytes of payload.
func header(src, dst netip.Addr, proto sid.Proto, n int) []byte {
	b := make([]byte, ip6Len, ip6Len+n)
	b[0], b[6], b[7] = 6<<4, byte(proto), 64
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	s, d := src.As16(), dst.As16()
	copy(b[8:], s[:])
	copy(b[24:], d[:])
	return b
}

// fill computes the transport checksum at off of a packet without extension headers.
func fill(b []byte, off int) { checksum.Put6(b, ip6Len, ip6Len+off, b[6]) }

// refusal is the ICMPv6 destination unreachable for p.
func refusal(p *packet, from netip.Addr, code uint8) []byte {
	quote := p.b[:min(len(p.b), quoteMax)&^3]
	b := header(from, p.src, sid.ICMPv6, icmpLen+len(quote))
	b = append(b, unreachable, code, 0, 0, 0, 0, 0, 0)
	b = append(b, quote...)
	fill(b, 2)
	return b
}

func (m *Machine) refuse(p *packet, from netip.Addr, code uint8, reason string) {
	m.sendBack(reason, refusal(p, from, code))
}

// bounce returns a first packet to the service prefix, to find another instance.
func (m *Machine) bounce(p *packet, s *service) {
	if p.b[7] <= 1 {
		m.drop("drop_hop_limit")
		return
	}
	p.b[7]--
	p.setWord(p.word&^labelMask | (p.retry() + 1))
	p.rewrite(p.src, s.upper.Addr(sid.Low(p.dst)))
	m.sendBack("bounced", p.b)
}

// reset answers a TCP packet with RST; anything else is dropped.
func (m *Machine) reset(p *packet, reason string) {
	if p.proto != sid.TCP || p.piece != whole || p.flags&rst != 0 || p.l4 != ip6Len {
		m.drop(reason)
		return
	}
	t := make([]byte, tcpLen)
	binary.BigEndian.PutUint16(t, p.dport)
	binary.BigEndian.PutUint16(t[2:], p.sport)
	t[12], t[13] = tcpLen/4<<4, rst
	if p.flags&ack != 0 {
		binary.BigEndian.PutUint32(t[4:], p.ack)
	} else {
		binary.BigEndian.PutUint32(t[8:], p.seq+1)
		t[13] |= ack
	}
	b := append(header(p.dst, p.src, sid.TCP, tcpLen), t...)
	fill(b, 16)
	m.sendBack(reason, b)
}

const (
	version      = 1
	probe        = 3
	probeAck     = 4
	messageAhead = 8 // UDP header
)

// message takes what came for the message port, docs/protocol.md §4.
func (m *Machine) message(p *packet) {
	body := p.l4 + messageAhead
	switch {
	case p.piece == laterPiece || len(p.b) < body+2:
		m.drop("drop_malformed")
	case sid.Low(p.dst) == sid.HostSuffix && p.b[body] == version && p.b[body+1] == probe:
		m.answerProbe(p, body)
	default:
		m.tell("message", p.b, Drop)
	}
}

func (m *Machine) answerProbe(p *packet, body int) {
	p.replace(body, []byte{version, probeAck}, p.sumAt())
	p.rewrite(p.dst, p.src)
	binary.BigEndian.PutUint16(p.b[p.l4:], p.dport)
	binary.BigEndian.PutUint16(p.b[p.l4+2:], p.sport)
	p.b[7] = 64
	m.sendBack("probed", p.b)
}
