package checked

import "encoding/binary"

// A Pattern is an endless sequence of bytes; the same seed gives the same.
type Pattern uint64

// The two directions of a stream differ, so that an echo of what was sent is noticed.
const serverSends = 0x5ca1ab1e0ddba11

// Up is what the client of a stream sends.
func Up(seed uint64) Pattern { return Pattern(seed) }

// Down is what the server of a stream sends.
func Down(seed uint64) Pattern { return Pattern(seed ^ serverSends) }

// word is the finalizer of splitmix64: eight bytes at each position.
func (p Pattern) word(n uint64) uint64 {
	x := uint64(p) + (n+1)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Fill writes the bytes that begin at the position.
func (p Pattern) Fill(b []byte, at uint64) {
	var w [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(w[:], p.word(at/8))
		n := copy(b, w[at%8:])
		b, at = b[n:], at+uint64(n)
	}
}

// Check returns the index of the first byte that is not the pattern's, -1 where all are.
func (p Pattern) Check(b []byte, at uint64) int {
	var w [8]byte
	for i := 0; i < len(b); {
		binary.LittleEndian.PutUint64(w[:], p.word(at/8))
		for _, want := range w[at%8:] {
			if i == len(b) {
				return -1
			}
			if b[i] != want {
				return i
			}
			i, at = i+1, at+1
		}
	}
	return -1
}
