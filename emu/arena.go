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
	smallSlots = 1 << 16
	largeSlots = 1 << 13
)

// An arena holds the frames of one worker. Pages are taken from the machine when they are first used.
type arena struct {
	memory []byte
	free   [2][]uint32 // slots of small and large frames; the one used last is used next
	frames []Frame     // what lies in each slot
	refs   []int32     // parts that are still to leave
}

func newArena() (*arena, error) {
	size := smallSlots*smallStep + largeSlots*largeStep
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for packets: %w", size, err)
	}
	a := &arena{memory: m, frames: make([]Frame, smallSlots+largeSlots), refs: make([]int32, smallSlots+largeSlots)}
	for id := range uint32(smallSlots + largeSlots) {
		last := smallSlots + largeSlots - 1 - id // so that the first slots are used first
		a.free[class(last)] = append(a.free[class(last)], last)
	}
	return a, nil
}

func (a *arena) close() { unix.Munmap(a.memory) } //nolint:errcheck // nothing else can be done

func class(id uint32) int {
	if id < smallSlots {
		return 0
	}
	return 1
}

// slot is all of a slot's memory.
func (a *arena) slot(id uint32) []byte {
	if id < smallSlots {
		at := int(id) * smallStep
		return a.memory[at : at+smallFrame]
	}
	at := smallSlots*smallStep + int(id-smallSlots)*largeStep
	return a.memory[at : at+largeFrame]
}

// bytes is a frame with its vnet header.
func (a *arena) bytes(id uint32) []byte { return a.slot(id)[:vnetLen+a.frames[id].Bytes] }

// take finds a free slot of a class.
func (a *arena) take(c int) (id uint32, ok bool) {
	free := a.free[c]
	if len(free) == 0 {
		return 0, false
	}
	a.free[c] = free[:len(free)-1]
	return free[len(free)-1], true
}

// drop gives up n references to a slot; without any it is free again.
func (a *arena) drop(id uint32, n int32) {
	if a.refs[id] -= n; a.refs[id] <= 0 {
		a.refs[id] = 0
		a.free[class(id)] = append(a.free[class(id)], id)
	}
}
