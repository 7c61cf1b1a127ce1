package stripe

import "time"

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
	for range min(s.waiting.len(), streamsAtOnce) {
		o := s.stillWaiting()
		if o == nil {
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
			if !s.wins(now, k, p) {
				continue
			}
			s.Counts.Late += n
			return s.send(now, o, k, p), true
		}
	}
	if s.waiting.len() > 0 { // an idle connection is asked often, and nothing becomes late so quickly
		p.look = now.Add(max(p.RTT/8, time.Millisecond))
		s.lookAt(p.look)
	}
	return Frame{}, false
}

// wins reports whether a copy on p is likely to overtake the one under way. One that is due later is expected when it is
// due. One that is late by a time is expected to be late by as much again: what holds it up is not known, and a
// connection that lost a segment needs a round trip at least.
func (s *Sender) wins(now time.Time, k *kept, p *path) bool {
	first := k.on[0]
	copied := now.Add(p.ahead(uint64(k.Length)) + p.RTT/4) // a quarter, so that jitter alone sends nothing twice
	known := k.due.Add(first.RTT/2 + stateDelay)           // when STATE would have told that it arrived
	if now.Before(known) {
		return copied.Before(k.due)
	}
	return copied.Before(now.Add(now.Sub(known)))
}
