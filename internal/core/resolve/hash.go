package resolve

import (
	"math/bits"
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// golden is 2^64 divided by the golden ratio, the increment of splitmix64.
const golden = 0x9E3779B97F4A7C15

// mix is the finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Hash is the k of docs/protocol.md §3.2: all that the choice takes from the packet.
func Hash(src netip.Addr, retry uint8) uint64 {
	return mix(uint64(sid.LocatorOf(src)) ^ mix(sid.Low(src)+golden*(uint64(retry)+1)))
}

// cost is -log2(h / 2^64) with 32 fraction bits; h = 0 counts as 1. Between the 1024 points of the
// table it is linear, so its relative error is below 1/4096 everywhere, also where it nears zero:
// that is what keeps a ratio of 1:65535.
func cost(h uint64) uint64 {
	if h == 0 {
		h = 1
	}
	zeros := bits.LeadingZeros64(h)
	m := h << zeros // the top bit is set: 1.fraction
	i := m >> 53 & 1023
	part := m >> 21 & 0xffffffff
	low := log2Table[i]
	step := log2Table[i+1] - low // wraps at the last entry as it should
	return uint64(zeros+1)<<32 - uint64(low) - uint64(step)*part>>32
}
