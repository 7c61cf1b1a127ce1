package flow

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/checksum"
	"scaffold.dev/scaffold/sid"
)

const (
	ip6Len  = 40
	icmpLen = 8
	tcpLen  = 20

	extHop, extRouting, extFragment, extOptions = 0, 43, 44, 60
	maxExtensions                               = 6

	fin, syn, rst, psh, ack = 0x01, 0x02, 0x04, 0x08, 0x10

	unreachable, parameterProblem = 1, 4
	noRoute                       = 0
	noSuchPort                    = 4
	echoRequest, echoReply        = 128, 129
)

type piece uint8

const (
	whole piece = iota
	firstPiece
	laterPiece
)

// packet is an IPv6 packet of which the machine owns the bytes, and what it has read of them.
type packet struct {
	b            []byte
	src, dst     netip.Addr
	word         uint32
	l4           int
	proto        sid.Proto
	piece        piece
	id           uint32
	sport, dport uint16
	seq, ack     uint32
	flags        uint8
	typ, code    uint8
	socket       uint64 // cookie of its socket
	dying        bool   // the process behind its socket died
	note         string // what is counted although it passes
}

// parse reads the fixed header of a copy of b.
func parse(b []byte) (packet, bool) {
	if len(b) < ip6Len || b[0]>>4 != 6 {
		return packet{}, false
	}
	p := packet{b: append([]byte(nil), b...), l4: ip6Len, proto: sid.Proto(b[6]), word: binary.BigEndian.Uint32(b)}
	p.src, p.dst = addrs(b)
	return p, true
}

func addrs(b []byte) (src, dst netip.Addr) {
	return netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
}

// transport reads on to the ports; false when the headers do not hold what they promise.
func (p *packet) transport() bool {
	if !p.extensions() {
		return false
	}
	if p.piece == laterPiece {
		return true
	}
	need, known := map[sid.Proto]int{sid.TCP: tcpLen, sid.UDP: 8, sid.ICMPv6: icmpLen}[p.proto]
	if !known {
		return true
	}
	if len(p.b) < p.l4+need {
		return false
	}
	t := p.b[p.l4:]
	switch p.proto {
	case sid.TCP:
		p.seq, p.ack, p.flags = binary.BigEndian.Uint32(t[4:]), binary.BigEndian.Uint32(t[8:]), t[13]
		fallthrough
	case sid.UDP:
		p.sport, p.dport = binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
	case sid.ICMPv6:
		if p.typ, p.code = t[0], t[1]; p.typ == echoRequest || p.typ == echoReply {
			p.sport = binary.BigEndian.Uint16(t[4:])
			p.dport = p.sport
		}
	}
	return true
}

func (p *packet) extensions() bool {
	for range maxExtensions {
		switch p.proto {
		case extHop, extRouting, extFragment, extOptions:
		default:
			return true
		}
		if len(p.b) < p.l4+8 {
			return false
		}
		h := p.b[p.l4:]
		if p.proto != extFragment {
			p.proto, p.l4 = sid.Proto(h[0]), p.l4+8*(1+int(h[1]))
			continue
		}
		switch where := binary.BigEndian.Uint16(h[2:]); {
		case where&0xfff8 != 0:
			p.piece = laterPiece
		case where&1 != 0:
			p.piece = firstPiece
		default:
			p.piece = whole
		}
		p.id, p.proto, p.l4 = binary.BigEndian.Uint32(h[4:]), sid.Proto(h[0]), p.l4+8
		if p.piece == laterPiece {
			return true
		}
	}
	return false
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
	switch p.proto {
	case sid.TCP:
		return p.l4 + 16
	case sid.UDP:
		return p.l4 + 6
	case sid.ICMPv6:
		return p.l4 + 2
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

func (p *packet) retry() uint32 { return p.word & 3 }
