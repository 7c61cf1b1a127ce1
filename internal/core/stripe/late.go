package stripe

import (
	"slices"
	"time"
)

const (
	// budget is which part of all bytes may go out a second time because they are late: one in so many.
	budget = 20
	// streamsAtOnce and chunksAtOnce are how many an idle connection looks through for a late chunk.
	streamsAtOnce, chunksAtOnce = 16, 32
)

// nextLate sends a copy of the oldest chunk that has not arrived, if it is likely to be there before the first one:
// because that is late, or because the connection that carries it is slow. It costs nothing that others could use: the
// connection has nothing else to send.
func (s *Sender) nextLate(now time.Time, p *path) (Frame, bool) {
	if len(s.paths) < 2 || s.waiting.len() == 0 {
		return Frame{}, false
	}
	if now.Before(p.look) {
		s.lookAt(p.look)
		return Frame{}, false
	}
	next := time.Time{} // when the first of those that were looked through is late
	for range min(s.waiting.len(), streamsAtOnce) {
		o := s.stillWaiting()
		if o == nil || o.early {
			continue
		}
		for i := o.seen; i < min(o.next, o.seen+chunksAtOnce); i++ {
			k := o.chunks.at(i)
			if k.arrived || k.again || k.on[0] == nil || k.on[1] != nil || k.carriedBy(p) {
				continue
			}
			n := uint64(k.Length)
			if (s.Counts.Late+n)*budget > s.Counts.First {
				return Frame{}, false // what comes first will allow more
			}
			late := k.on[0].late(k.due, p, n)
			if next.IsZero() || late.Before(next) {
				next = late
			}
			if now.After(late) || !p.rests && k.slower(now, p) {
				s.Counts.Late += n
				return s.send(now, o, k, p), true
			}
		}
	}
	if s.waiting.len() > 0 { // an idle connection is asked often, and nothing becomes late so quickly
		p.look = now.Add(max(p.RTT/8, time.Millisecond))
		if p.rests && p.look.Before(next) {
			p.look = next.Add(1) // then it is late
		}
		s.lookAt(p.look)
	}
	return Frame{}, false
}

// late is from when on a copy of n bytes on o is likely to overtake what should have come over p at a time. What is late by a time
// is expected to be late by as much again: what holds it up is not known, and a connection that lost a segment needs a round trip
// at least. For that alone one that rests carries nothing: others are to have its part, and it is there for when nothing comes.
func (p *path) late(due time.Time, o *path, n uint64) time.Time {
	known := due.Add(p.RTT/2 + stateDelay) // when STATE would have told that it arrived
	late := o.ahead(n) + o.RTT/4           // a quarter, so that jitter alone sends nothing twice
	if o.rests {
		late = max(late, 5*p.RTT/4)
	}
	return known.Add(late)
}

// slower reports whether a chunk that may yet come when it is due would be there before on p.
func (k *kept) slower(now time.Time, p *path) bool {
	return now.Before(k.due.Add(k.on[0].RTT/2+stateDelay)) && now.Add(p.ahead(uint64(k.Length))+p.RTT/4).Before(k.due)
}

// nextLateEnding sends the end of a stream again, if the first one is late. Whether it has come is not told before the end host
// has acknowledged it, which may take it long; so it goes out again once only.
func (s *Sender) nextLateEnding(now time.Time, p *path) (Frame, bool) {
	for s.ended.len() > 0 {
		o := *s.ended.at(0)
		late := time.Time{}
		switch {
		case o.end.done, o.end.on == nil: // it has come, or goes out anew in any case
		case o.end.on != p:
			late = o.end.on.late(o.end.due, p, 0)
			if now.Before(late) {
				s.lookAt(late)
				return Frame{}, false
			}
		case s.another(p):
			return Frame{}, false
		}
		s.ended.pop()
		if o.end.looked = false; !late.IsZero() {
			return o.ender(), true
		}
	}
	return Frame{}, false
}

// another reports whether anything may go out on another connection.
func (s *Sender) another(p *path) bool {
	return slices.ContainsFunc(s.paths, func(o *path) bool { return o != p && !o.retires })
}
