package flow

import (
	"encoding/binary"
	"net/netip"
)

// A Purpose is what a marked number is for.
type Purpose uint64

// The purposes.
const (
	Offer Purpose = 1<<63 + 1 // a socketID that an instance offers, for the client's address
	Nonce Purpose = 1<<63 + 2 // of a PROBE from one host to another, which may answer from anywhere: for nobody
)

// Mark gives a random number the form by which the edge knows it again when it comes back, docs/protocol.md §6.7: the
// lower half stays, the upper is a keyed hash of it below a top bit of 1.
func Mark(key [2]uint64, number uint64, peer netip.Addr, why Purpose) uint64 {
	low := number & 0xffffffff
	var a [16]byte
	if peer.IsValid() {
		a = peer.As16()
	}
	// The program reads an address as it lies in the packet.
	upper, lower := binary.NativeEndian.Uint64(a[:]), binary.NativeEndian.Uint64(a[8:])
	return 1<<63 | sipHash(key, upper, lower, low, uint64(why))>>33<<32 | low
}

// marked reports whether a number has that form.
func (m *Machine) marked(number uint64, peer netip.Addr, why Purpose) bool {
	return Mark(m.cfg.Key, number, peer, why) == number|1<<63
}
