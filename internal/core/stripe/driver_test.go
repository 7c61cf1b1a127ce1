package stripe

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// run lets everything happen until all sessions are over, and no longer than a virtual time.
func (w *world) run(most time.Duration) {
	end := w.now.Add(most)
	w.pump()
	for !w.over() {
		if !w.step() || w.still > 1e6 {
			w.t.Fatalf("at %v: nothing is left to happen, or all happens at once\n%s", w.now.Sub(time.Unix(0, 0)), w)
		}
		if w.now.After(end) {
			w.t.Fatalf("not over after %v\n%s", most, w)
		}
		w.pump()
	}
}

func (w *world) over() bool {
	for _, s := range w.sources {
		if !s.done {
			return false
		}
	}
	return true
}

// pump does what the two drivers do after each event.
func (w *world) pump() {
	for _, s := range w.sources {
		if !s.done {
			w.take(s)
			w.regret(s)
			w.give(s)
		}
	}
	w.sender.Expire(w.now)
	for _, session := range w.receiver.Expire(w.now, nil) {
		w.give(w.sources[session/2-1])
	}
	w.write()
	w.free()
	w.check()
	w.wake(w.sender.Deadline())
	w.wake(w.receiver.Deadline())
}

// take reads from a source what there is room for.
func (w *world) take(s *source) {
	for !s.closed {
		room := w.sender.Room(s.session)
		if s.written == s.length && s.hold {
			return
		}
		if s.written == s.length {
			s.closed = true
			if s.cut {
				w.sender.Abort(s.session, frame.Reset)
			} else {
				w.sender.End(s.session)
			}
			return
		}
		if room == 0 {
			return
		}
		if s.slot == nil || s.slot.full == w.slotSize {
			w.taken++
			s.number, s.slot = w.taken, &slot{session: s.session, offset: s.written, bytes: make([]byte, w.slotSize)}
			w.slots[s.number] = s.slot
		}
		n := min(uint64(room), uint64(s.grain), s.length-s.written, uint64(w.slotSize-s.slot.full))
		for i := range n {
			s.slot.bytes[s.slot.full+int(i)] = content(s.session, s.written+i)
		}
		w.sender.Push(s.session, Chunk{s.written, uint32(n), s.number, uint32(s.slot.full)})
		s.slot.full += int(n)
		s.written += n
	}
}

// give writes to a reader what is ready for it, and takes from it what it has read.
func (w *world) give(s *source) {
	w.readers(s)
	var places [8]Place
	for {
		room := s.room - int(s.got-s.read)
		ready := w.receiver.Deliver(s.session, places[:])
		n := 0
		for _, p := range ready.Places {
			m := min(int(p.Length), room-n)
			for i := range m {
				if got := w.page(p.Block)[int(p.At)+i]; got != content(s.session, s.got+uint64(n+i)) {
					w.t.Fatalf("byte %d of session %d is %#x, want %#x\n%s", s.got+uint64(n+i), s.session, got, content(s.session, s.got+uint64(n+i)), w)
				}
			}
			if n += m; m < int(p.Length) {
				break
			}
		}
		s.got += uint64(n)
		if n > 0 {
			w.gap = max(w.gap, w.now.Sub(w.lastBytes))
			w.lastBytes = w.now
			w.receiver.Delivered(w.now, s.session, n)
		}
		whole := n == total(ready.Places)
		switch {
		case ready.Abort != 0 && (whole || w.receiver.streams[s.session].late):
			s.rst = true
			w.receiver.Acknowledged(w.now, s.session, s.read, true)
		case ready.End && whole:
			s.fin = true
		}
		if n == 0 || !whole {
			break
		}
	}
	w.receiver.Acknowledged(w.now, s.session, s.read, s.fin && s.read == s.got)
	w.finish(s)
}

func total(places []Place) (n int) {
	for _, p := range places {
		n += int(p.Length)
	}
	return n
}

// regret has a source say RST at some moment behind its FIN.
func (w *world) regret(s *source) {
	if s.regrets && s.closed && !s.regretted && w.random.IntN(4) == 0 {
		s.regretted = true
		w.sender.Abort(s.session, frame.Reset)
	}
}

// readers lets the far end host read as fast as it does.
func (w *world) readers(s *source) {
	if s.drain == 0 {
		s.read = s.got
		return
	}
	waited := w.now.Sub(s.drained)
	if s.paused != nil && s.paused(w.now) {
		waited = 0
		s.drained = w.now
	}
	if n := uint64(waited.Seconds() * s.drain); n > 0 {
		s.read = min(s.read+n, s.got)
		s.drained = w.now
	}
	if s.read < s.got {
		w.wake(w.now.Add(5 * time.Millisecond).Truncate(time.Millisecond))
	}
}

// finish forgets a session whose stream is over at both agents, as RETIRE does.
func (w *world) finish(s *source) {
	if !w.sender.Ended(s.session) {
		return
	}
	ends := s.fin != s.rst || s.fin && s.regretted // the reader may see both ends, as anybody does whose peer sends both
	if !ends || s.fin && (s.got != s.length || s.cut) || s.rst && !s.cut && !s.regretted || s.got > s.length {
		w.t.Fatalf("session %d ended badly\n%s", s.session, w)
	}
	s.done = true
	w.sender.Close(s.session)
	w.receiver.Close(s.session)
}

func (w *world) page(block uint32) []byte {
	if block >= w.blocks {
		w.t.Fatalf("block %d of %d", block, w.blocks)
	}
	if w.pages[block] == nil {
		w.pages[block] = make([]byte, Block)
	}
	return w.pages[block]
}

// write fills all connections that have room.
func (w *world) write() {
	if len(w.wires) > 0 {
		for {
			state, ok := w.receiver.Next(w.now)
			if !ok {
				break
			}
			c := w.wires[w.random.IntN(len(w.wires))] // any will do, the quickest is the best
			for _, o := range w.wires {
				if !w.anyhow && o.delay < c.delay {
					c = o
				}
			}
			w.carry(c, 1, packet{of: frame.TypeState, state: state}, func(p packet) { w.must(w.sender.State(&p.state), p) })
		}
	}
	for again := true; again; {
		again = false
		for _, c := range w.wires {
			if !c.room(w.now) {
				continue
			}
			f, ok := w.sender.Next(w.now, c.id)
			if !ok {
				continue
			}
			again = true
			p := packet{of: f.Type, header: f.Header, cause: f.Cause}
			if f.Type == frame.TypeData {
				in := w.slots[f.Chunk.Slot]
				if in == nil || in.session != f.Session || in.offset+uint64(f.Chunk.At) != f.Offset {
					w.t.Fatalf("chunk %+v of session %d lies in %+v\n%s", f.Chunk, f.Session, in, w)
				}
				p.payload = in.bytes[f.Chunk.At : f.Chunk.At+f.Chunk.Length]
				w.chunks++
			}
			w.carry(c, 0, p, func(p packet) { w.arrive(c, p) })
		}
	}
}

// arrive is the far agent's reader.
func (w *world) arrive(c *wire, p packet) {
	var err error
	switch p.of {
	case frame.TypeData:
		c.delivered += len(p.payload)
		var places [8]Place
		var to []Place
		to, err = w.receiver.Arrive(w.now, p.header, places[:0])
		for _, at := range to {
			copy(w.page(at.Block)[at.At:at.At+at.Length], p.payload[at.InPacket:])
		}
	case frame.TypeEnd:
		err = w.receiver.End(w.now, p.header)
	case frame.TypeAbort:
		err = w.receiver.Abort(w.now, frame.Abort{Session: p.header.Session, Offset: p.header.Offset, Cause: p.cause})
	}
	w.must(err, p)
}

func (w *world) free() {
	for _, number := range w.sender.Freed() {
		if w.slots[number] == nil {
			w.t.Fatalf("slot %d is freed twice\n%s", number, w)
		}
		for _, s := range w.sources {
			if s.slot == w.slots[number] {
				s.slot = nil
			}
		}
		delete(w.slots, number)
	}
}

// check looks at what holds all the time: memory is bounded, and what is granted has its place.
func (w *world) check() {
	kept := uint64(0)
	for _, s := range w.sources {
		r, _ := w.sender.Kept(s.session)
		kept += r.To - r.From
		if in := w.receiver.streams[s.session]; in != nil && (in.first+uint64(in.blocks.len()))*Block != in.credit {
			w.t.Fatalf("session %d has %d blocks from %d on, and a credit of %d", s.session, in.blocks.len(), in.first, in.credit)
		}
	}
	if kept > w.memory || w.receiver.Reserved() > int(w.blocks) {
		w.t.Fatalf("%d of %d bytes are kept, %d of %d blocks reserved\n%s", kept, w.memory, w.receiver.Reserved(), w.blocks, w)
	}
}

// wake has the drivers called at a time.
func (w *world) wake(at time.Time) {
	if at.IsZero() || w.wakes[at.UnixNano()] {
		return
	}
	w.wakes[at.UnixNano()] = true
	w.after(max(at.Sub(w.now), 0), func() { delete(w.wakes, at.UnixNano()) })
}

// settle is called when all is over: nothing is left anywhere.
func (w *world) settle() {
	w.free()
	if len(w.slots) != 0 || w.receiver.Reserved() != 0 || w.sender.backlog != 0 || w.sender.beyond != 0 || w.receiver.beyond != 0 {
		w.t.Fatalf("left behind: %d slots, %d blocks, backlog %d, beyond %d and %d\n%s",
			len(w.slots), w.receiver.Reserved(), w.sender.backlog, w.sender.beyond, w.receiver.beyond, w)
	}
}
