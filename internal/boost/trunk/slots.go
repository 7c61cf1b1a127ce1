package trunk

import "scaffold.dev/scaffold/internal/boost/memory"

// slots are the memory of chunks, with who works at it outside of the trunk's lock: a slot whose chunks have all been
// acknowledged, by a copy that was faster, is given back only when nobody reads or writes it any more.
type slots struct {
	all    *memory.Slots
	busy   map[uint32]*work
	filled map[uint32]*Session // which add to a slot
}

// work is what goes on at a slot.
type work struct {
	hands int
	freed bool // no chunk needs it
}

// newSlots divides the memory of a trunk.
func newSlots(all *memory.Slots) slots {
	return slots{all: all, busy: map[uint32]*work{}, filled: map[uint32]*Session{}}
}

// hold notes that somebody works at a slot.
func (s *slots) hold(slot uint32) {
	w := s.busy[slot]
	if w == nil {
		w = &work{}
		s.busy[slot] = w
	}
	w.hands++
}

// drop is the end of a hold.
func (s *slots) drop(slot uint32) {
	w := s.busy[slot]
	if w.hands--; w.hands > 0 {
		return
	}
	delete(s.busy, slot)
	if w.freed {
		s.free(slot)
	}
}

// free gives a slot back that no chunk needs, as soon as nobody works at it. The session that added to it takes another.
func (s *slots) free(slot uint32) {
	if w := s.busy[slot]; w != nil {
		w.freed = true
		return
	}
	if filling := s.filled[slot]; filling != nil {
		filling.slot = filling.slot.none()
		delete(s.filled, slot)
	}
	s.all.Free(slot)
}

// keep notes that a slot is needed again: a chunk was added to it while it was held.
func (s *slots) keep(slot uint32) { s.busy[slot].freed = false }

// A filling is the slot that a session reads into.
type filling struct {
	number uint32
	room   []byte // all of it; nil: there is none
	used   int
}

func (filling) none() filling { return filling{} }

// rest is what is still to be filled.
func (f *filling) rest() []byte { return f.room[f.used:] }

// filling is the slot that a session's next bytes go to, with room for at least one of them; without memory: false. A
// slot is filled up before the next one is taken, so that a session of small messages does not hold one for each.
func (s *slots) filling(of *Session, bytes int) bool {
	if f := &of.slot; f.room != nil {
		if f.used < len(f.room) {
			return true
		}
		delete(s.filled, f.number) // its chunks alone hold it now
		*f = f.none()
	}
	number, room := s.all.Get(bytes)
	if room == nil {
		return false
	}
	s.all.Note(number, of.id, of.read)
	of.slot = filling{number: number, room: room}
	s.filled[number] = of
	return true
}

// leave has a session end that read into a slot. Where a chunk lies in it that is given back with the chunk.
func (s *slots) leave(of *Session) {
	f := of.slot
	of.slot = f.none()
	if f.room == nil {
		return
	}
	delete(s.filled, f.number)
	if f.used == 0 {
		s.free(f.number)
	}
}
