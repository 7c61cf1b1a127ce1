package emu

import (
	"math"
	"math/bits"
	"time"
)

// connect makes a ring between each two shards, in both directions.
func (n *Net) connect() {
	for _, from := range n.shards {
		for _, to := range n.shards {
			if from == to {
				continue
			}
			r := &ring{from: from, to: to}
			r.back.slots = make([]uint32, 1<<bits.Len(uint(len(from.arena.refs))))
			from.out = append(from.out, r)
			to.in = append(to.in, r)
		}
	}
}

// ringTo is the ring to another shard.
func (s *shard) ringTo(far *shard) *ring {
	i := far.number
	if far.number > s.number {
		i--
	}
	return s.out[i]
}

// crosses reports whether the way leads to another shard. What is on such a way lies there.
func (w *way) crosses() bool { return w.near != w.far }

// cross sends what the line has decided about to the other shard, in whose wheel it waits for its time.
func (w *way) cross(s *shard) {
	r := s.ringTo(w.far)
	soon := Never
	for {
		p, ok := w.line.Take(math.MaxInt64)
		if !ok {
			break
		}
		// Parts of a train share a slot, and what is written there must not meet what is read elsewhere.
		if s.arena.refs[p.slot] > 1 && !s.arena.unshare(&p.Packet, s.head[:]) {
			s.arena.release(p.slot)
			w.starved++
			continue
		}
		s.arena.write(&p.Packet)
		c := crossed{p.Due, p.Packet, w}
		switch {
		case s.net.opt.Virtual:
			r.later = append(r.later, c)
		case r.put(c):
			soon = min(soon, p.Due)
		default:
			s.arena.release(p.slot)
			w.starved++
		}
	}
	if int64(soon) < w.far.asleep.Load() {
		w.far.poll.wake()
	}
}

// collect takes in what other shards sent, and takes back what they have copied.
func (s *shard) collect() {
	for _, r := range s.in {
		for c, ok := r.get(); ok; c, ok = r.get() {
			s.admit(r, c)
		}
		for _, c := range r.later {
			s.admit(r, c)
		}
		r.later = r.later[:0]
	}
	s.takeBack()
}

func (s *shard) takeBack() {
	for _, r := range s.out {
		r.back.drain(s.arena.give)
	}
}

// waiting reports whether anything is to be collected.
func (s *shard) waiting() bool {
	for _, r := range s.in {
		if r.head.Load() != r.tail.Load() {
			return true
		}
	}
	return false
}

// admit copies a packet into the shard's own memory and lets it wait for its time.
func (s *shard) admit(r *ring, c crossed) {
	p, ok := s.arena.adopt(r.from.arena, c.Packet)
	r.back.put(c.slot)
	if !ok {
		c.way.missed++
		return
	}
	c.way.wait(s, c.due, p)
}

// adopt copies a packet that lies in another arena; nothing changes there.
func (a *arena) adopt(other *arena, p Packet) (own Packet, ok bool) {
	b := other.bytes(p.slot)
	id, ok := a.takeFor(len(b))
	if !ok {
		return own, false
	}
	copy(a.slot(id), b)
	a.frames[id], a.refs[id] = other.frames[p.slot], 1
	own = p
	own.slot = id
	return own, true
}

// wait keeps a packet that came from another shard until it is due.
func (w *way) wait(s *shard, due time.Duration, p Packet) {
	w.arrivals.pushAny(Part{Due: due, Packet: p})
	if w.timer.slot == idle || due < w.timer.due {
		s.wheel.set(&w.timer, due)
	}
}
