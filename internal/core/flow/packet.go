package flow

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

const (
	ip6Len  = header.IPv6Len
	icmpLen = header.ICMPv6Len
	tcpLen  = header.TCPLen

	fin, syn, rst, psh, ack = header.FIN, header.SYN, header.RST, header.PSH, header.ACK

	unreachable, parameterProblem = 1, 4
	noRoute                       = 0
	noNeighbour                   = 3
	noSuchPort                    = 4
	echoRequest, echoReply        = 128, 129
)

// What a packet is of a datagram that was cut.
const (
	whole      = header.Whole
	firstPiece = header.First
	laterPiece = header.Later
)

// packet is an IPv6 packet of which the machine owns the bytes, and what it has read of them.
type packet struct {
	b            []byte
	src, dst     netip.Addr
	word         uint32
	l4           int
	proto        sid.Proto
	piece        header.Piece
	id           uint32
	sport, dport uint16
	seq, ack     uint32
	flags        uint8
	typ, code    uint8
	socket       uint64    // cookie of its socket
	again        sid.Label // of a SYN that the kernel sends again
	dying        bool      // the process behind its socket died
	note         string    // what is counted although it passes
}

// parse reads the fixed header of a copy of b.
func parse(b []byte) (packet, bool) {
	if len(b) < ip6Len || b[0]>>4 != 6 {
		return packet{}, false
	}
	p := packet{b: append([]byte(nil), b...), l4: ip6Len, proto: sid.Proto(header.IPv6(b).Next()), word: binary.BigEndian.Uint32(b)}
	p.src, p.dst = addrs(b)
	return p, true
}

func addrs(b header.IPv6) (src, dst netip.Addr) { return b.Src(), b.Dst() }

// transport reads on to the ports; false when the headers do not hold what they promise.
func (p *packet) transport() bool {
	if !p.extensions() {
		return false
	}
	if p.piece == laterPiece {
		return true
	}
	need := header.Least(uint8(p.proto))
	if need == 0 {
		return true
	}
	if len(p.b) < p.l4+need {
		return false
	}
	t := header.Transport(p.b[p.l4:])
	switch p.proto {
	case sid.TCP:
		p.seq, p.ack, p.flags = t.Seq(), t.Ack(), t.Flags()
		fallthrough
	case sid.UDP:
		p.sport, p.dport = t.Ports()
	case sid.ICMPv6:
		if p.typ, p.code = t.Kind(); p.typ == echoRequest || p.typ == echoReply {
			p.sport = t.Echo()
			p.dport = p.sport
		}
	}
	return true
}

func (p *packet) extensions() bool {
	u, ok := header.Above(p.b, header.Most)
	p.proto, p.l4, p.piece, p.id = sid.Proto(u.Proto), u.At, u.Piece, u.ID
	return ok
}

func (p *packet) isSYN() bool { return p.proto == sid.TCP && p.flags&(syn|ack|rst) == syn }

func (p *packet) isSYNACK() bool { return p.proto == sid.TCP && p.flags&(syn|ack|rst) == syn|ack }

func (p *packet) isEcho(typ uint8) bool { return p.proto == sid.ICMPv6 && p.typ == typ }

func (p *packet) isError() bool {
	return p.proto == sid.ICMPv6 && p.piece == whole && p.typ >= unreachable && p.typ <= parameterProblem
}

// sumAt is where the transport checksum lies, -1 where there is none.
func (p *packet) sumAt() int {
	if p.piece == laterPiece {
		return -1
	}
	if at, ok := header.SumAt(uint8(p.proto)); ok {
		return p.l4 + at
	}
	return -1
}

// rewrite replaces both addresses.
func (p *packet) rewrite(src, dst netip.Addr) {
	s, d := src.As16(), dst.As16()
	p.replace(8, append(s[:], d[:]...), p.sumAt())
	p.src, p.dst = src, dst
}

// replace writes b at off and corrects the checksum at sum, unless that is -1. RFC 1624.
func (p *packet) replace(off int, b []byte, sum int) {
	if sum >= 0 {
		p.adjust(p.b[off:off+len(b)], b, sum)
	}
	copy(p.b[off:], b)
}

func (p *packet) adjust(from, to []byte, at int) {
	old := binary.BigEndian.Uint16(p.b[at:])
	if old == 0 && p.proto == sid.UDP {
		return // no checksum
	}
	acc := uint64(^old)
	for i := 0; i < len(to); i += 2 {
		acc += uint64(^binary.BigEndian.Uint16(from[i:])) + uint64(binary.BigEndian.Uint16(to[i:]))
	}
	sum := ^checksum.Fold(acc)
	if p.proto == sid.UDP {
		sum = checksum.NonZero(sum)
	}
	binary.BigEndian.PutUint16(p.b[at:], sum)
}

func (p *packet) setWord(word uint32) {
	p.word = word
	binary.BigEndian.PutUint32(p.b, word)
}

// label is the flow label, docs/protocol.md §3.1.
func (p *packet) label() sid.Label { return sid.Label(p.word & labelMask) }
