package wg

import (
	"encoding/binary"
	"math/bits"
)

// sum adds b to a sum of 16-bit words in one's complement, RFC 1071, eight bytes at a time. b begins at an even place.
func sum(b []byte, initial uint64) uint64 {
	s, carry := initial, uint64(0)
	for ; len(b) >= 32; b = b[32:] {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[8:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[16:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b[24:]), carry)
	}
	for ; len(b) >= 8; b = b[8:] {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
	}
	var rest [8]byte
	copy(rest[:], b)
	s, carry = bits.Add64(s, binary.BigEndian.Uint64(rest[:]), carry)
	s, carry = bits.Add64(s, 0, carry)
	return s + carry
}

// fold makes 16 bits of it.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}
