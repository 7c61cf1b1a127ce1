package emu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Frames on their way lie in one mapping that the collector does not see. Small ones have slots of
// their own class, or a few thousand of them would take the place of as many trains. A stride that is
// no power of two spreads slots over the sets of the caches.
const (
	smallFrame = 2048
	largeFrame = vnetLen + 1<<16 + 64
	smallStep  = smallFrame + 64
	largeStep  = (largeFrame + 127) &^ 63
)

// Memory says how many frames each shard can hold at once, in queues and on links. Pages are taken from the machine
// when they are first used: 2112 bytes for a small frame, 65,728 for a large one.
type Memory struct {
	Small int `json:"small,omitempty"` // up to 2 KB; 0 is DefaultSmall
	Large int `json:"large,omitempty"` // larger ones, such as trains of segments; 0 is DefaultLarge
}

// What the zero values of Memory mean.
const (
	DefaultSmall = 1 << 16
	DefaultLarge = 1 << 13
)

// An arena holds the frames of one shard.
type arena struct {
	memory []byte
	small  uint32      // slots of the first class
	free   [2][]uint32 // slots of small and large frames; the one used last is used next
	frames []Frame     // what lies in each slot
	refs   []int32     // packets that lie there, or parts of a train
}

func newArena(m Memory) (*arena, error) {
	if m.Small == 0 {
		m.Small = DefaultSmall
	}
	if m.Large == 0 {
		m.Large = DefaultLarge
	}
	size, slots := m.Small*smallStep+m.Large*largeStep, m.Small+m.Large
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for packets: %w", size, err)
	}
	a := &arena{memory: b, small: uint32(m.Small), frames: make([]Frame, slots), refs: make([]int32, slots)}
	for i := range uint32(slots) {
		last := uint32(slots) - 1 - i // so that the first slots are used first
		a.free[a.class(last)] = append(a.free[a.class(last)], last)
	}
	return a, nil
}

func (a *arena) close() { unix.Munmap(a.memory) } //nolint:errcheck // nothing else can be done

func (a *arena) class(id uint32) int {
	if id < a.small {
		return 0
	}
	return 1
}

// place is where a slot begins.
func (a *arena) place(id uint32) int {
	if id < a.small {
		return int(id) * smallStep
	}
	return int(a.small)*smallStep + int(id-a.small)*largeStep
}

// slot is all of a slot's memory.
func (a *arena) slot(id uint32) []byte {
	if id < a.small {
		at := int(id) * smallStep
		return a.memory[at : at+smallFrame : at+smallFrame]
	}
	at := int(a.small)*smallStep + int(id-a.small)*largeStep
	return a.memory[at : at+largeFrame : at+largeFrame]
}

// bytes is a frame with its vnet header.
func (a *arena) bytes(id uint32) []byte { return a.slot(id)[:vnetLen+a.frames[id].Bytes] }

// frame describes the frame that a packet is, or is of.
func (a *arena) frame(p *Packet) Frame {
	if p.flags&flagTrain != 0 {
		return a.frames[p.slot]
	}
	n := uint32(p.length) + etherLen
	return Frame{Bytes: n, Head: n, Count: 1}
}

// span is the number of bytes of a packet, or of those of a train with their headers.
func (a *arena) span(p *Packet) uint64 {
	if p.flags&flagTrain != 0 {
		return a.frames[p.slot].span(uint32(p.first), uint32(p.count))
	}
	return uint64(p.length) + etherLen
}

// take finds a free slot of a class.
func (a *arena) take(c int) (id uint32, ok bool) {
	free := a.free[c]
	if len(free) == 0 {
		return 0, false
	}
	a.free[c] = free[:len(free)-1]
	return free[len(free)-1], true
}

// takeFor finds a free slot for n bytes, the vnet header among them.
func (a *arena) takeFor(n int) (id uint32, ok bool) {
	switch {
	case n <= smallFrame:
		return a.take(0)
	case n <= largeFrame:
		return a.take(1)
	}
	return 0, false
}

// release gives up one packet of a slot; without any the slot is free again.
func (a *arena) release(id uint32) {
	if a.refs[id]--; a.refs[id] <= 0 {
		a.give(id)
	}
}

// give frees a slot.
func (a *arena) give(id uint32) {
	a.refs[id] = 0
	c := a.class(id)
	a.free[c] = append(a.free[c], id)
}

// unshare gives a packet, or a part of a train, a slot of its own.
func (a *arena) unshare(p *Packet, head []byte) bool {
	f := a.frames[p.slot]
	b := a.bytes(p.slot)
	header, payload := b, []byte(nil)
	if p.flags&flagTrain != 0 {
		header, payload = cut(head, b, f, *p)
	}
	id, ok := a.takeFor(len(header) + len(payload))
	if !ok {
		return false
	}
	own := a.slot(id)
	n := copy(own, header)
	n += copy(own[n:], payload)
	whole := Frame{Bytes: uint32(n - vnetLen), Head: uint32(n - vnetLen), Count: 1}
	if p.flags&flagTrain != 0 && p.count > 1 {
		whole.Head, whole.Size, whole.Count = f.Head, f.Size, uint32(p.count)
	} else {
		p.flags &^= flagTrain
		p.length = uint16(n - atIP)
	}
	a.frames[id], a.refs[id] = whole, 1
	a.release(p.slot)
	p.slot, p.first = id, 0
	return true
}
