// Package checksum is the checksum of the Internet: the complement of the sum of 16-bit words in ones' complement,
// RFC 1071, over what an IP header covers or, with a pseudo header before it, a transport.
//
// A sum under way is a uint64, which [Fold] makes 16 bits of when all is added.
package checksum

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Good is the folded sum of what carries a right checksum.
const Good = 0xffff

// Add adds the words of b to a sum, eight bytes at a time. b begins at an even place; a last odd byte is the upper half
// of a word. Only sums of nothing but zeros are 0.
func Add(sum uint64, b []byte) uint64 {
	var carry uint64
	for ; len(b) >= 32; b = b[32:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), carry)
	}
	for ; len(b) >= 8; b = b[8:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
	}
	sum, carry = bits.Add64(sum, rest(b), carry)
	return sum + carry
}

// rest is what fewer than eight bytes add.
func rest(b []byte) (sum uint64) {
	if len(b) >= 4 {
		sum, b = uint64(binary.BigEndian.Uint32(b)), b[4:]
	}
	if len(b) >= 2 {
		sum, b = sum+uint64(binary.BigEndian.Uint16(b)), b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// Fold makes 16 bits of a sum.
func Fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}

// Sum is the folded sum of b.
func Sum(b []byte) uint16 { return Fold(Add(0, b)) }

// Plus adds two words.
func Plus(a, b uint16) uint16 {
	s := uint32(a) + uint32(b)
	return uint16(s + s>>16)
}

// Update changes the checksum in front of b for a word that it covers and that has changed, RFC 1624: ~(~HC + ~m + m').
func Update(b []byte, was, is uint16) {
	binary.BigEndian.PutUint16(b, ^Plus(Plus(^binary.BigEndian.Uint16(b), ^was), is))
}

// Pseudo is the sum of the pseudo header before a transport of so many bytes: of IPv4 (RFC 9293, 3.1) and of IPv6 (RFC
// 8200, 8.1), which add up alike.
func Pseudo(src, dst netip.Addr, proto uint8, length int) uint64 {
	return addr(src) + addr(dst) + uint64(proto) + uint64(length)
}

// Transport is the folded sum of a transport with its pseudo header.
func Transport(src, dst netip.Addr, proto uint8, b []byte) uint16 {
	return Fold(Add(Pseudo(src, dst, proto, len(b)), b))
}

// addr is the sum of an address, of 32 bits at most.
func addr(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return uint64(Sum(b[:]))
}

// NonZero is a checksum as UDP sends it: 0 would say that there is none, and 0xffff is the same number.
func NonZero(c uint16) uint16 {
	if c == 0 {
		return 0xffff
	}
	return c
}

const protoUDP = 17

// Put6 writes the checksum of the transport that begins at l4 of an IPv6 packet, into its field at that offset.
func Put6(packet []byte, l4, field int, proto uint8) {
	binary.BigEndian.PutUint16(packet[field:], 0)
	c := ^Fold(Add(Add(uint64(proto)+uint64(len(packet)-l4), packet[8:40]), packet[l4:]))
	if proto == protoUDP {
		c = NonZero(c)
	}
	binary.BigEndian.PutUint16(packet[field:], c)
}
