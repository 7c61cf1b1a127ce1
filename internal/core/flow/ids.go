package flow

import (
	"math/bits"

	"scaffold.dev/scaffold/sid"
)

// IDs makes socketIDs that nobody without the key can predict: a keyed hash over numbers that never repeat.
type IDs struct {
	Key  [2]uint64 // random, secret
	CPU  uint16    // keeps makers with the same key apart
	made uint64
}

// New returns the next socketID.
func (g *IDs) New() sid.SocketID {
	g.made++
	return sid.NewSocketID(sipHash(g.Key, uint64(g.CPU)<<48|g.made))
}

// sipHash is SipHash-2-4 (Aumasson, Bernstein 2012) of numbers in little-endian order.
func sipHash(key [2]uint64, words ...uint64) uint64 {
	v := [4]uint64{
		key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573,
	}
	for _, word := range append(words, uint64(8*len(words))<<56) {
		v[3] ^= word
		sipRound(&v)
		sipRound(&v)
		v[0] ^= word
	}
	v[2] ^= 0xff
	for range 4 {
		sipRound(&v)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipRound(v *[4]uint64) {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}
