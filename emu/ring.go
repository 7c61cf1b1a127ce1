package emu

import (
	"sync/atomic"
	"time"
)

// A crossed packet is on its way from one shard to another: bytes in the memory of the first.
type crossed struct {
	due time.Duration
	Packet
	way *way
}

// ringSize holds more than a shard sends in one slice of the processor's time, or two threads that wait for each
// other's slice would lose packets.
const ringSize = 1 << 14

// A ring goes from one shard to one other. One thread writes, one reads.
type ring struct {
	from, to *shard
	items    [ringSize]crossed
	_        [56]byte // the two ends lie in cache lines of their own
	head     atomic.Uint64
	_        [56]byte
	tail     atomic.Uint64
	_        [56]byte
	back     returns
	later    []crossed // in virtual time, where nothing may be lost and nobody reads meanwhile
}

// put adds a packet; false if the ring is full.
func (r *ring) put(c crossed) bool {
	t := r.tail.Load()
	if t-r.head.Load() == ringSize {
		return false
	}
	r.items[t&(ringSize-1)] = c
	r.tail.Store(t + 1)
	return true
}

// get takes the packet that came first.
func (r *ring) get() (c crossed, ok bool) {
	h := r.head.Load()
	if h == r.tail.Load() {
		return c, false
	}
	c = r.items[h&(ringSize-1)]
	r.head.Store(h + 1)
	return c, true
}

// Returns bring slots back to the shard that they are of. There is room for all of them.
type returns struct {
	slots      []uint32 // length is a power of two
	head, tail atomic.Uint64
}

func (b *returns) put(slot uint32) {
	t := b.tail.Load()
	b.slots[t&uint64(len(b.slots)-1)] = slot
	b.tail.Store(t + 1)
}

func (b *returns) drain(give func(uint32)) {
	h, t := b.head.Load(), b.tail.Load()
	for ; h < t; h++ {
		give(b.slots[h&uint64(len(b.slots)-1)])
	}
	b.head.Store(h)
}
