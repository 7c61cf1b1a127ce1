package memory

import (
	"fmt"
	"math/bits"

	"scaffold.dev/scaffold/internal/core/stripe"
)

// orders is how many sizes of slots there are: stripe.Block times 1, 2, 4, ... up to stripe.MaxChunk.
const orders = 7

// Slots are pieces of memory of several sizes, by the buddy system (Knowlton, 1965): a slot that is freed grows together
// with its other half, so that large ones are there again when load falls. It is of one goroutine at a time.
type Slots struct {
	all   []byte
	notes []note // beside each slot's first block, in the file as well; nil: it is noted nowhere
	free  [orders]list
	// state is, at a slot's first block, how large it is and whether it is in use; elsewhere 0. Which place it has in its
	// list stands beside it.
	state []uint8
	place []uint32
	used  int
}

// list holds the numbers of free slots of one size.
type list []uint32

const (
	size  = 0x0f // of a slot, in state: its order, plus one
	inUse = 0x80
)

// NewSlots divides a mapping. What was noted there of slots in use is gone: [Recover] keeps it.
func NewSlots(m *Mapping) *Slots {
	s := newSlots(m)
	for b := range s.notes {
		s.notes[b].session.Store(0)
	}
	s.freeAll(nil)
	return s
}

func newSlots(m *Mapping) *Slots {
	if len(m.all)%stripe.MaxChunk != 0 {
		panic(fmt.Sprintf("memory: %d bytes are no multiple of %d", len(m.all), stripe.MaxChunk))
	}
	blocks := len(m.all) / stripe.Block
	return &Slots{all: m.all, notes: m.notes, state: make([]uint8, blocks), place: make([]uint32, blocks)}
}

// freeAll gives all memory to the lists but slots that are in use, of which it is told where they begin and how large they
// are, as orders.
func (s *Slots) freeAll(used map[uint32]int) {
	const largest = 1 << (orders - 1)
	within := map[uint32]map[uint32]int{} // the same, by the largest slot that each would be part of
	for slot, o := range used {
		all := within[slot/largest]
		if all == nil {
			all = map[uint32]int{}
			within[slot/largest] = all
		}
		all[slot] = o
	}
	for b := len(s.state) - largest; b >= 0; b -= largest { // the first ones come first
		s.freeAround(uint32(b), orders-1, within[uint32(b)/largest])
	}
}

// freeAround frees what is free of a piece, cut up no more than those in use need.
func (s *Slots) freeAround(slot uint32, o int, used map[uint32]int) {
	if is, ok := used[slot]; ok && is == o {
		s.state[slot] = inUse | uint8(o+1)
		s.used += stripe.Block << o
		return
	}
	for at := range used {
		if at >= slot && at < slot+1<<o {
			s.freeAround(slot+1<<(o-1), o-1, used)
			s.freeAround(slot, o-1, used)
			return
		}
	}
	s.put(slot, o)
}

// Get is a slot with room for so many bytes, at most stripe.MaxChunk, or the largest that is there; none: nil.
func (s *Slots) Get(bytes int) (slot uint32, room []byte) {
	want := order(bytes)
	for o := want; o < orders; o++ {
		if n := len(s.free[o]); n > 0 {
			return s.split(s.free[o][n-1], o, want)
		}
	}
	for o := want - 1; o >= 0; o-- {
		if n := len(s.free[o]); n > 0 {
			return s.split(s.free[o][n-1], o, o)
		}
	}
	return 0, nil
}

// split takes a slot of one size and gives what is beyond another back.
func (s *Slots) split(slot uint32, has, want int) (uint32, []byte) {
	s.take(slot, has)
	for has > want {
		has--
		s.put(slot+1<<has, has)
	}
	s.state[slot] = inUse | uint8(want+1)
	s.used += stripe.Block << want
	return slot, s.Bytes(slot)
}

// Bytes is the memory of a slot that is in use.
func (s *Slots) Bytes(slot uint32) []byte {
	if s.state[slot]&inUse == 0 {
		panic(fmt.Sprintf("memory: slot %d is not in use", slot))
	}
	at, long := int(slot)*stripe.Block, stripe.Block<<(s.state[slot]&size-1)
	return s.all[at : at+long : at+long]
}

// Free gives a slot back.
func (s *Slots) Free(slot uint32) {
	long := len(s.Bytes(slot))
	s.used -= long
	if s.notes != nil {
		s.notes[slot].session.Store(0)
	}
	o := order(long)
	s.state[slot] = 0
	for o < orders-1 {
		other := slot ^ 1<<o
		if s.state[other] != uint8(o+1) { // in use, or cut up
			break
		}
		s.take(other, o)
		slot &^= 1 << o
		o++
	}
	s.put(slot, o)
}

// Used is how many bytes are in use.
func (s *Slots) Used() int { return s.used }

// order is the size of the smallest slot with room for so many bytes.
func order(n int) int {
	return min(bits.Len(uint(max(n-1, 0)/stripe.Block)), orders-1)
}

func (s *Slots) put(slot uint32, o int) {
	s.state[slot], s.place[slot] = uint8(o+1), uint32(len(s.free[o]))
	s.free[o] = append(s.free[o], slot)
}

// take takes a free slot out of its list, wherever in it that is.
func (s *Slots) take(slot uint32, o int) {
	l := s.free[o]
	last := l[len(l)-1]
	l[s.place[slot]] = last
	s.place[last] = s.place[slot]
	s.free[o] = l[:len(l)-1]
	s.state[slot] = 0
}
