package stripe

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

const (
	// MinWindow is what a session may have on its way at least, in bytes: less would make one chunk of it wait for the
	// other.
	MinWindow = 64 << 10
	// MaxChunks is how many chunks of a session a sender keeps at a time (docs/protocol.md §9).
	MaxChunks = 16384
	// MinChunk is what a chunk should have at least, in bytes, where there is so much to read: below, headers and calls
	// cost more than bytes.
	MinChunk = 16 << 10
	// MaxChunk is what it may have: above, one holds up all others behind it.
	MaxChunk = frame.MaxData
)

// Size is how many bytes a chunk should have at a rate in bytes a second: what goes out in 2 ms.
func Size(rate float64) int {
	return int(min(max(rate*0.002, MinChunk), MaxChunk))
}

// first is what goes out at once on a connection of which nothing is known yet, with its frame's header: ten segments of
// 1,448 bytes (RFC 6928) with a little room. One byte more takes another round trip.
const first = 14 << 10

// size is how many bytes a chunk should have that the connection carries.
func (p *path) size() int {
	if p.Rate == 0 {
		return first
	}
	return Size(p.Rate)
}

// A Chunk is bytes of a stream that go out together, and where the driver keeps them. Several chunks that follow each
// other may lie in one slot.
type Chunk struct {
	Offset uint64 // of its first byte in the stream
	Length uint32 // bytes
	Slot   uint32 // the driver's number of a piece of memory
	At     uint32 // where in the slot it begins, bytes
}

// End is the offset behind its last byte.
func (c Chunk) End() uint64 { return c.Offset + uint64(c.Length) }

// A kept chunk is one that the end host has not acknowledged.
type kept struct {
	Chunk
	on      [2]*path  // who carries a copy of it: none, one or two connections
	due     time.Time // when the last copy should have arrived
	sent    bool      // at least once
	arrived bool      // the far agent has it
	again   bool      // it went down with a connection and waits to go out anew
}

// carriedBy reports whether a copy of it is under way on the connection.
func (k *kept) carriedBy(p *path) bool { return k.on[0] == p || k.on[1] == p }

// carry notes that a copy of it goes out on a connection.
func (k *kept) carry(p *path, due time.Time) {
	i := 0
	if k.on[0] != nil {
		i = 1
	}
	k.on[i] = p
	k.sent, k.due = true, due
	p.inflight += uint64(k.Length)
}

// land takes it off the connections that carry it.
func (k *kept) land() {
	for i, p := range k.on {
		if p != nil {
			p.inflight -= uint64(k.Length)
		}
		k.on[i] = nil
	}
}

// drop takes it off one connection, which died, and reports whether no other has it.
func (k *kept) drop(p *path) (lost bool) {
	for i := range k.on {
		if k.on[i] == p {
			k.on[i] = nil
			lost = true
		}
	}
	if k.on[0] == nil {
		k.on[0], k.on[1] = k.on[1], nil
	}
	return lost && k.on[0] == nil
}
