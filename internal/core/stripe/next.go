package stripe

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// copiesAtOnce is how many chunks are looked through for one that a connection does not carry itself.
const copiesAtOnce = 256

// Next is what a connection that has room sends: ends of streams first, then chunks by the strategy, each session in its
// turn, then copies of what is late. One that rests sends copies alone.
func (s *Sender) Next(now time.Time, c Conn) (Frame, bool) {
	p := s.path(c)
	if p == nil || p.retires || p.doubted {
		return Frame{}, false
	}
	s.Expire(now)
	if !p.rests {
		if f, ok := s.nextEnding(now, p); ok {
			return f, true
		}
	}
	if s.strategy.copies() > 1 && s.doubles(p) {
		if f, ok := s.nextCopy(now, p); ok {
			return f, true
		}
	}
	if !p.rests {
		if f, ok := s.nextChunk(now, p); ok {
			return f, true
		}
	}
	if f, ok := s.nextLateEnding(now, p); ok {
		return f, true
	}
	return s.nextLate(now, p)
}

// doubles reports whether a connection takes second copies of chunks. Where fewer than two carry any, those that rest do: a
// strategy that sends all twice is to have two connections.
func (s *Sender) doubles(p *path) bool {
	carry := 0
	for _, o := range s.paths {
		if !o.idle() {
			carry++
		}
	}
	return s.another(p) && (!p.rests || carry < 2)
}

func (s *Sender) nextEnding(now time.Time, p *path) (Frame, bool) {
	for s.endings.len() > 0 {
		o := *s.endings.at(0)
		if o.end.ready && !s.quick(now, o, p) {
			return Frame{}, false
		}
		s.endings.pop()
		if !o.end.ready {
			continue
		}
		o.end.ready, o.end.on, o.end.sent = false, p, true
		o.end.due = now.Add(p.ahead(0))
		if !o.end.looked {
			o.end.looked = true
			s.ended.push(o)
		}
		return o.ender(), true
	}
	return Frame{}, false
}

// ender is the frame that ends the stream.
func (o *outgoing) ender() Frame {
	if o.end.kind == frame.TypeAbort {
		m := frame.Abort{Session: o.session, Offset: o.tail, Cause: o.cause}
		return Frame{Header: m.Header(), Cause: o.cause}
	}
	return Frame{Header: frame.End(o.session, o.tail)}
}

// quick reports whether an END may go out on a connection: not on one that takes more than twice as long as another, for
// the end host would see its FIN that much later. The other one has as long again to find room.
func (s *Sender) quick(now time.Time, o *outgoing, p *path) bool {
	best := p.ahead(0)
	for _, other := range s.paths {
		if !other.idle() {
			best = min(best, other.ahead(0))
		}
	}
	if p.ahead(0) <= 2*best {
		return true
	}
	if o.end.until.IsZero() {
		o.end.until = now.Add(2 * best)
	}
	if now.Before(o.end.until) {
		s.lookAt(o.end.until)
		return false
	}
	return true
}

// nextChunk is deficit round robin (Shreedhar and Varghese, 1996) over the sessions that may send.
func (s *Sender) nextChunk(now time.Time, p *path) (Frame, bool) {
	asked := false
	for {
		o, i := s.turn(p)
		if o == nil {
			return Frame{}, false
		}
		// Whole or not at all, a chunk that is longer holds up all that is behind it, a second on a connection that has just
		// begun.
		if most := uint32(p.size()); o.chunks.at(i).Length >= 2*most && o.chunks.len() < MaxChunks {
			o.cut(i, most)
		}
		k := o.chunks.at(i)
		n := uint64(k.Length)
		if !asked && !o.early { // what is early has no choice
			if !s.strategy.takes(now, s, p, n) {
				return Frame{}, false
			}
			asked = true
		}
		if o.deficit < n {
			o.deficit += quantum
			if s.turns.len() > 1 {
				s.turns.push(s.turns.pop())
			}
			continue
		}
		o.deficit -= n
		if k.again {
			k.again = false
			o.again--
			s.Counts.Again += n
		} else {
			s.Counts.First += n
			o.reached = max(o.reached, k.End())
			o.next = i + 1
		}
		s.strategy.took(s, p, n)
		f := s.send(now, o, k, p)
		s.touch(o)
		return f, true
	}
}

func (s *Sender) send(now time.Time, o *outgoing, k *kept, p *path) Frame {
	k.carry(p, now.Add(p.ahead(uint64(k.Length))))
	if !o.underWay {
		o.underWay = true
		s.waiting.push(o)
	}
	return Frame{Header: frame.Chunk(o.session, k.Offset, k.Length), Chunk: k.Chunk}
}

// nextCopy is the second copy of the oldest chunk that went out once, on another connection.
func (s *Sender) nextCopy(now time.Time, p *path) (Frame, bool) {
	for range s.waiting.len() {
		o := s.stillWaiting()
		if o == nil || o.early {
			continue
		}
		for ; o.copied < o.next; o.copied++ {
			if k := o.chunks.at(o.copied); !k.arrived && (k.on[1] == nil || k.again) {
				break
			}
		}
		for i := o.copied; i < min(o.next, o.copied+copiesAtOnce); i++ {
			k := o.chunks.at(i)
			if k.arrived || k.again || k.on[0] == nil || k.on[1] != nil || k.carriedBy(p) {
				continue
			}
			s.Counts.Copy += uint64(k.Length)
			return s.send(now, o, k, p), true
		}
	}
	return Frame{}, false
}

// stillWaiting takes the next stream of those whose chunks are under way to the end of their queue. It is nil for one
// that has none.
func (s *Sender) stillWaiting() *outgoing {
	o := s.waiting.pop()
	if o.seen >= o.next && o.again == 0 {
		o.underWay = false
		return nil
	}
	s.waiting.push(o)
	return o
}
