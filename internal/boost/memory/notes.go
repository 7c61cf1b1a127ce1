package memory

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"scaffold.dev/scaffold/internal/core/stripe"
)

// A note says, beside the first block of a slot, whose bytes are in it. It is written before any of them is read, so a
// process that is killed leaves no bytes that nobody can place. How many there are it does not say: each slot of a session
// goes on where the one before it ends, and how far the last one is filled the kernel knows.
type note struct {
	session atomic.Uint64 // 0: the slot is not in use, or its note is not whole yet
	offset  uint64        // of the slot's first byte in the stream
	order   uint64        // its size
}

const noteLen = int(unsafe.Sizeof(note{}))

func notesOf(bytes int) int { return bytes / stripe.Block * noteLen }

// notesIn are the notes of a mapping, which begins at a page, as does what is behind a whole number of blocks.
func notesIn(b []byte) []note {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*note)(unsafe.Pointer(&b[0])), len(b)/noteLen)
}

// Note writes down that what comes into a slot are bytes of a session, from an offset of its stream on.
func (s *Slots) Note(slot uint32, session, offset uint64) {
	n := &s.notes[slot]
	n.offset, n.order = offset, uint64(s.state[slot]&size-1)
	n.session.Store(session) // last: it makes the rest count
}

// A Kept slot has bytes of a session.
type Kept struct {
	Slot   uint32
	Offset uint64 // of the first byte, in the session's stream
	Length uint32
}

// Recover divides a mapping that another process has divided before and has left at whatever moment. read says up to
// which offset a session's stream was read, and whether it goes on: of those that do the kept slots are returned, in the
// order of the stream and without gaps up to that offset. Of a session whose slots do not fit to that nothing is kept, and
// its number is among the broken ones. All else is free.
func Recover(m *Mapping, read func(session uint64) (upTo uint64, goesOn bool)) (s *Slots, kept map[uint64][]Kept, broken []uint64) {
	s = newSlots(m)
	found := map[uint64][]Kept{}
	for b := range s.notes {
		n := &s.notes[b]
		session := n.session.Load()
		if session == 0 {
			continue
		}
		if _, goesOn := read(session); !goesOn || n.order >= orders || b&(1<<n.order-1) != 0 {
			n.session.Store(0)
			continue
		}
		found[session] = append(found[session], Kept{Slot: uint32(b), Offset: n.offset, Length: stripe.Block << n.order})
	}
	kept, used := map[uint64][]Kept{}, map[uint32]int{}
	for session, slots := range found {
		upTo, _ := read(session)
		whole, ok := fitted(slots, upTo)
		if !ok {
			broken = append(broken, session)
		}
		for _, k := range slots {
			if at := slices.IndexFunc(whole, func(w Kept) bool { return w.Slot == k.Slot }); at < 0 {
				s.notes[k.Slot].session.Store(0)
			} else {
				used[k.Slot] = int(s.notes[k.Slot].order)
			}
		}
		if len(whole) > 0 {
			kept[session] = whole
		}
	}
	s.freeAll(used)
	return s, kept, broken
}

// fitted puts the slots of a session in order, and takes how much is in each from where the next one begins. Of those that
// begin at the end of what was read, nothing is in.
func fitted(slots []Kept, upTo uint64) (whole []Kept, ok bool) {
	slices.SortFunc(slots, func(a, b Kept) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, k := range slots {
		end := upTo
		if i+1 < len(slots) {
			end = slots[i+1].Offset
		}
		if end < k.Offset || end-k.Offset > uint64(k.Length) {
			return nil, false
		}
		if k.Length = uint32(end - k.Offset); k.Length > 0 {
			whole = append(whole, k)
		}
	}
	return whole, true
}

func (k Kept) String() string {
	return fmt.Sprintf("slot %d: bytes %d to %d", k.Slot, k.Offset, k.Offset+uint64(k.Length))
}
