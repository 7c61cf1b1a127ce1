package header

import "encoding/binary"

// Extension headers that hosts send, RFC 8200 §4.
const (
	hopByHop    = 0
	routing     = 43
	Fragment    = 44
	destination = 60
)

// A Piece is what a packet is of a datagram that was cut.
type Piece uint8

// The pieces.
const (
	Whole Piece = iota
	First
	Later
)

// An Upper is what a packet carries above IPv6.
type Upper struct {
	Proto uint8
	At    int // where it begins
	Named int // where the field is that names Proto
	Piece Piece
	ID    uint32 // of the datagram, of one that was cut
}

// Most is how many extension headers the programs in the kernel walk over, MAX_EXTENSIONS of parse.h.
const Most = 6

// Above walks over the extension headers of a packet, so many at most. In a later fragment there is nothing of the upper header
// to be found: At is where the piece begins. The packet may break off before At: who reads on looks. Not ok: it breaks off within
// an extension's first bytes, or has more of them; the Upper is where the walk ended.
func Above(b IPv6, most int) (u Upper, ok bool) {
	u = Upper{Proto: b.Next(), At: IPv6Len, Named: 6}
	for range most {
		switch u.Proto {
		case hopByHop, routing, destination, Fragment:
		default:
			return u, true
		}
		if len(b) < u.At+8 {
			return u, false
		}
		head := b[u.At:]
		cut := u.Proto == Fragment
		u.Proto, u.Named = head[0], u.At
		if !cut {
			u.At += 8 + int(head[1])*8
			continue
		}
		u.At += 8
		u.ID = binary.BigEndian.Uint32(head[4:])
		switch place := binary.BigEndian.Uint16(head[2:]); {
		case place&0xfff8 != 0:
			u.Piece = Later
			return u, true
		case place&1 != 0:
			u.Piece = First
		default:
			u.Piece = Whole // of one piece, RFC 6946
		}
	}
	return u, false
}

// Least is the least header of a transport, 0 of those that are not known here.
func Least(proto uint8) int {
	switch proto {
	case TCP:
		return TCPLen
	case UDP:
		return UDPLen
	case ICMPv6:
		return ICMPv6Len
	}
	return 0
}

// SumAt is where in its header a transport has its checksum, RFC 9293, 768 and 4443; not ok of others.
func SumAt(proto uint8) (at int, ok bool) {
	switch proto {
	case TCP:
		return 16, true
	case UDP:
		return 6, true
	case ICMPv6:
		return 2, true
	}
	return 0, false
}
