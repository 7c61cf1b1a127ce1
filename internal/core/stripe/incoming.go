package stripe

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Block is the unit of a receiver's memory, in bytes. The byte at offset o of a stream lies in the stream's block
// o/Block, wherever that block is: so every byte before the credit has one place, however it is cut and in whatever
// order it comes, and small chunks take no more room than their bytes.
const Block = 16 << 10

// floorBlocks is how many blocks each session has a right to: MinWindow, which begins somewhere in a block.
const floorBlocks = MinWindow/Block + 1

// A Place is bytes in a block of the receiver's memory.
type Place struct {
	Block    uint32 // its number, from 0 on
	At       uint32 // where in the block, bytes
	Length   uint32 // bytes
	InPacket uint32 // where in the payload that arrived, bytes
}

// An incoming stream is what one session receives.
type incoming struct {
	session      uint64
	acknowledged uint64 // by the end host
	delivered    uint64 // to the end host's socket
	arrived      uint64 // all before it is here
	beyond       ranges
	credit       uint64
	blocks       queue[uint32] // from the one that delivered is in, up to credit
	first        uint64        // the stream's number of blocks[0]

	kind     frame.Type // TypeEnd, TypeAbort; 0: the stream goes on
	end      uint64     // its length then
	cause    frame.Cause
	over     time.Time // when an ABORT takes effect whatever has come
	late     bool      // it has
	finished bool      // the end host has acknowledged the FIN, or was reset

	floor  uint64 // highest when the peer's worker began anew
	said   told
	urgent bool      // it is in Receiver.urgent
	due    time.Time // when it is to be said at the latest; zero: there is nothing to say
	rate   rate
}

// told is what the last STATE said, of what a sender may wait for.
type told struct{ acknowledged, credit uint64 }

// highest is the offset behind the last byte that is here.
func (in *incoming) highest() uint64 {
	if n := len(in.beyond); n > 0 {
		return in.beyond[n-1].To
	}
	return in.arrived
}

// places appends where the bytes of r lie. Where the payload begins at an offset of the stream, payload says; of what is
// delivered it is r.From.
func (in *incoming) places(r frame.Range, payload uint64, to []Place) []Place {
	for r.From < r.To {
		at := r.From % Block
		n := min(Block-at, r.To-r.From)
		to = append(to, Place{Block: *in.blocks.at(int(r.From/Block - in.first)), At: uint32(at), Length: uint32(n), InPacket: uint32(r.From - payload)})
		r.From += n
	}
	return to
}

// window is how many bytes beyond what is delivered the session should be able to have on its way: twice what it
// delivers in a round trip, so that it may double in the next.
func (in *incoming) window() uint64 { return max(2*in.rate.most(), MinWindow) }

// rate is how many bytes were delivered in each of the last round trips.
type rate struct {
	since time.Time
	bytes uint64 // since then
	past  [4]uint64
}

// add counts bytes that were delivered. A window that shrank with one slow round trip would make the next one slow.
func (r *rate) add(now time.Time, n uint64, rtt time.Duration) {
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) >= rtt {
		copy(r.past[1:], r.past[:])
		r.past[0], r.bytes, r.since = r.bytes, 0, now
	}
	r.bytes += n
}

func (r *rate) most() uint64 {
	return max(r.bytes, r.past[0], r.past[1], r.past[2], r.past[3])
}
