package flow

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// quoteMax is how much of a refused packet its refusal quotes.
const quoteMax = 128

// ownHops is the hop limit of what the machine sends itself.
const ownHops = 64

// refusal is the ICMPv6 destination unreachable for p.
func refusal(p *packet, from netip.Addr, code uint8) []byte {
	quote := p.b[:min(len(p.b), quoteMax)&^3]
	b := header.AppendIPv6(nil, from, p.src, header.ICMPv6, ownHops, icmpLen+len(quote))
	b = append(b, unreachable, code, 0, 0, 0, 0, 0, 0)
	b = append(b, quote...)
	header.Seal(b)
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
	p.setWord(p.word&^labelMask | uint32(sid.NewLabel(sid.LocatorOf(p.dst), p.label().Retry()+1)))
	p.rewrite(p.src, s.upper.Addr(sid.Low(p.dst)))
	m.sendBack("bounced", p.b)
}

// reset answers a TCP packet with RST; anything else is dropped.
func (m *Machine) reset(p *packet, reason string) {
	if p.proto != sid.TCP || p.piece != whole || p.flags&rst != 0 || p.l4 != ip6Len {
		m.drop(reason)
		return
	}
	t := header.Segment{Src: p.dport, Dst: p.sport, Flags: rst}
	if p.flags&ack != 0 {
		t.Seq = p.ack
	} else {
		t.Ack, t.Flags = p.seq+1, rst|ack
	}
	b := t.Append(header.AppendIPv6(nil, p.dst, p.src, header.TCP, ownHops, t.Len()))
	header.Seal(b)
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
	if p.piece == laterPiece || len(p.b) < p.l4+messageAhead+2 {
		m.drop("drop_malformed")
		return
	}
	m.tell("message", p.b, Drop)
}

// asked takes what came for the host itself: PROBEs, and answers to its own.
func (m *Machine) asked(p *packet) {
	body := p.l4 + messageAhead
	switch {
	case len(p.b) < body+2:
		m.drop("drop_malformed")
	case p.b[body] == version && p.b[body+1] == probe:
		m.answerProbe(p, body)
	case len(p.b) < body+16 || p.b[body] != version || p.b[body+1] != probeAck ||
		!m.marked(binary.BigEndian.Uint64(p.b[body+8:]), netip.Addr{}, Nonce):
		m.drop("drop_unasked")
	default:
		m.message(p)
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
