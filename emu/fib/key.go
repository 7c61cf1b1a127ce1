package fib

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// A key is a prefix as two words, the bits beyond its length zero. IPv4 lies in the first bits of hi.
type key struct {
	hi, lo uint64
	len    uint8
}

// keyOf is the key of a valid prefix, in the tree of its family.
func keyOf(p netip.Prefix) key {
	hi, lo := words(p.Addr())
	return key{hi, lo, uint8(p.Bits())}.cut(p.Bits())
}

// words are the address as it is looked up.
func words(a netip.Addr) (hi, lo uint64) {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:])) << 32, 0
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// cut is the key's first n bits, as a prefix of that length.
func (k key) cut(n int) key {
	if n <= 64 {
		return key{k.hi &^ (^uint64(0) >> n), 0, uint8(n)}
	}
	return key{k.hi, k.lo &^ (^uint64(0) >> (n - 64)), uint8(n)}
}

// common is how many bits two keys share from the left, beyond their lengths too.
func (k key) common(o key) int {
	if x := k.hi ^ o.hi; x != 0 {
		return bits.LeadingZeros64(x)
	}
	return 64 + bits.LeadingZeros64(k.lo^o.lo)
}

// covers reports whether all of o lies in k.
func (k key) covers(o key) bool { return k.len <= o.len && k.common(o) >= int(k.len) }

// compare orders keys by address, then shorter ones first: what a prefix covers follows it.
func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.hi, o.hi), cmp.Compare(k.lo, o.lo), cmp.Compare(k.len, o.len))
}

// prefix is the key as people write it.
func (k key) prefix(four bool) netip.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], k.hi)
	binary.BigEndian.PutUint64(b[8:], k.lo)
	if four {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(b[:4])), int(k.len))
	}
	return netip.PrefixFrom(netip.AddrFrom16(b), int(k.len))
}
