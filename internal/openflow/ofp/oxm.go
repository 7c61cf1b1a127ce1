package ofp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// An OXM is a field with a value, and with a mask if not all bits of the value count. OXMs can be
// compared by ==. They are made by Uint, Addr and their like.
type OXM struct {
	Field  Field
	value  string // network order, as many bytes as the field has
	mask   string // "" where all bits count
	masked bool
}

// A MAC is a hardware address.
type MAC [6]byte

func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Uint is the field with that value; bits that do not fit in it are cut off.
func Uint(f Field, v uint64) OXM { return OXM{Field: f, value: number(f, v)} }

// UintMasked is Uint of which only the bits that mask has count.
func UintMasked(f Field, v, mask uint64) OXM {
	return OXM{Field: f, value: number(f, v&mask), mask: number(f, mask), masked: true}
}

// number is v in as many bytes as the field has, of which a large one keeps the first zero.
func number(f Field, v uint64) string {
	b := make([]byte, 8+f.Size())
	binary.BigEndian.PutUint64(b[f.Size():], v)
	return string(b[8:])
}

// Addr is the field with that address, which must be of its family.
func Addr(f Field, a netip.Addr) OXM { return Bytes(f, a.AsSlice(), nil) }

// Prefix is the field with any address of a prefix of its family.
func Prefix(f Field, p netip.Prefix) OXM {
	if p.Bits() == p.Addr().BitLen() {
		return Addr(f, p.Addr())
	}
	mask := make([]byte, f.Size())
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return Bytes(f, p.Masked().Addr().AsSlice(), mask)
}

// HW is the field with that hardware address.
func HW(f Field, m MAC) OXM { return Bytes(f, m[:], nil) }

// Bytes is the field with that value, and with mask unless it is nil. It panics if their sizes are not
// the field's: that is a mistake of the program and not of its input.
func Bytes(f Field, value, mask []byte) OXM {
	if len(value) != f.Size() || mask != nil && len(mask) != f.Size() {
		panic(fmt.Sprintf("ofp: %v has %d bytes: got a value of %d and a mask of %d", f, f.Size(), len(value), len(mask)))
	}
	return OXM{Field: f, value: string(value), mask: string(mask), masked: mask != nil}
}

// Value is the value in network order.
func (o OXM) Value() []byte { return []byte(o.value) }

// Mask is the mask in network order, nil where all bits count.
func (o OXM) Mask() []byte {
	if !o.masked {
		return nil
	}
	return []byte(o.mask)
}

// Uint is the value as a number, of a long field its last 64 bits.
func (o OXM) Uint() (v uint64) {
	for _, b := range []byte(o.value) {
		v = v<<8 | uint64(b)
	}
	return v
}

// Addr is the value as an address; not valid if the field does not have the size of one.
func (o OXM) Addr() netip.Addr {
	a, _ := netip.AddrFromSlice([]byte(o.value))
	return a
}

// Prefix is value and mask as a prefix; not valid if they are none.
func (o OXM) Prefix() netip.Prefix {
	bits := 0
	for bits < 8*len(o.value) && (!o.masked || o.mask[bits/8]&(0x80>>(bits%8)) != 0) {
		bits++
	}
	p := netip.PrefixFrom(o.Addr(), bits)
	if p.IsValid() && Prefix(o.Field, p).mask != o.mask {
		return netip.Prefix{}
	}
	return p
}

// HW is the value as a hardware address; zero if the field does not have the size of one.
func (o OXM) HW() (m MAC) {
	if len(o.value) == len(m) {
		copy(m[:], o.value)
	}
	return m
}
