package stripe

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// quantum is how many bytes a session sends in its turn, when others wait. Below a chunk's size it takes several turns
// for one.
const quantum = 64 << 10

// A Sender is the sending half of a trunk: the streams of all its sessions, cut into chunks, over all its connections.
// It keeps each chunk until STATE says that the end host has acknowledged it.
//
// A connection with room asks by Next. Whatever changes may give work to a connection that had none: after each call
// the driver asks again for all that have room, and once Deadline is reached.
type Sender struct {
	strategy Strategy
	memory   uint64
	streams  map[uint64]*outgoing
	opened   opened
	paths    []*path

	endings queue[*outgoing] // whose END or ABORT waits
	turns   queue[*outgoing] // who may send, in turn
	waiting queue[*outgoing] // whose chunks are under way, to be looked through for late ones
	ended   queue[*outgoing] // whose END or ABORT went out, to be sent again if it is late
	backlog uint64           // bytes that may go out now
	beyond  uint64           // bytes that are kept beyond MinWindow of each stream
	freed   []uint32
	look    time.Time

	// Counts are what has been sent.
	Counts Counts
}

// Counts are in bytes of chunks.
type Counts struct {
	First uint64 // each byte once
	Again uint64 // went down with a connection before, or with a worker
	Copy  uint64 // by a strategy that sends each chunk twice
	Late  uint64 // sent again because the first copy is late
}

// NewSender makes a sender that keeps at most so many bytes.
func NewSender(memory uint64, s Strategy) *Sender {
	return &Sender{strategy: s, memory: memory, streams: map[uint64]*outgoing{}}
}

// Use has another strategy decide from now on.
func (s *Sender) Use(strategy Strategy) { s.strategy = strategy }

// A Frame is what a connection is to send.
type Frame struct {
	frame.Header             // of DATA, END or ABORT
	Chunk        Chunk       // where the bytes of DATA are
	Cause        frame.Cause // of ABORT
}

// Connect adds a connection.
func (s *Sender) Connect(c Conn, m Measure) {
	if s.path(c) != nil {
		panic(fmt.Sprintf("stripe: connection %d is there already", c))
	}
	p := &path{id: c, Measure: m}
	s.join(p)
	s.paths = append(s.paths, p)
}

// join gives a connection the share of the one that has had least: there is nothing that it has to catch up with.
func (s *Sender) join(p *path) {
	first := true
	for _, o := range s.paths {
		if o == p || o.idle() {
			continue
		}
		if first || o.share < p.share {
			p.share, first = o.share, false
		}
	}
}

// Rest has a connection take nothing new, or take its part again. Nothing is left to one that rests, whatever the strategy,
// and nobody waits for it; what has gone out on it arrives as it would. It goes on to carry copies: of what is late elsewhere, and
// of all where chunks are to go out twice and no two others carry any.
func (s *Sender) Rest(c Conn, rests bool) {
	p := s.path(c)
	if p == nil || p.retires || p.rests == rests {
		return
	}
	if p.rests = rests; !rests {
		s.join(p)
	}
}

// Retire has a connection take nothing any more, copies neither, until it is taken away.
func (s *Sender) Retire(c Conn) {
	if p := s.path(c); p != nil {
		p.rests, p.retires = true, true
	}
}

// Measure tells what is known of a connection.
func (s *Sender) Measure(c Conn, m Measure) {
	if p := s.path(c); p != nil {
		p.Measure = m
	}
}

// Disconnect takes a connection away that has died. What went out on it and is not known to have arrived goes out on
// others, unless another one carries a copy.
func (s *Sender) Disconnect(c Conn) {
	p := s.path(c)
	if p == nil {
		return
	}
	s.paths = slices.DeleteFunc(s.paths, func(o *path) bool { return o == p })
	s.leave(p)
}

// Doubt says that a connection answers nothing while another one does: what went out on it goes out on others, and nothing new
// on it, until that is taken back. Should it arrive after all it is a copy. Where no other one takes what is new nothing changes:
// there is nobody that it could be left to.
func (s *Sender) Doubt(c Conn, doubted bool) {
	p := s.path(c)
	if p == nil || p.doubted == doubted || doubted && !s.carried(p) {
		return
	}
	if p.doubted = doubted; !doubted {
		s.join(p)
		return
	}
	s.leave(p)
	p.inflight = 0
}

// carried reports whether another connection takes what is new.
func (s *Sender) carried(p *path) bool {
	return slices.ContainsFunc(s.paths, func(o *path) bool { return o != p && !o.idle() })
}

// leave has what went out on a connection go out on others.
func (s *Sender) leave(p *path) {
	for _, session := range slices.Sorted(maps.Keys(s.streams)) { // in order, so that a run can be repeated
		o := s.streams[session]
		for i := range o.chunks.len() {
			if k := o.chunks.at(i); k.drop(p) {
				o.lose(i)
			}
		}
		if o.only == p {
			o.only = nil
		}
		if o.end.on == p {
			o.end.on = nil
			s.ending(o)
		}
		s.touch(o)
	}
}

// lose notes that a chunk has to go out again.
func (o *outgoing) lose(i int) {
	if k := o.chunks.at(i); !k.again {
		k.again = true
		o.again++
		o.lost = min(o.lost, i)
	}
	o.copied = min(o.copied, i)
}

func (s *Sender) path(c Conn) *path {
	for _, p := range s.paths {
		if p.id == c {
			return p
		}
	}
	return nil
}

// Open adds a session whose stream goes on at an offset, 0 for a new one, with the credit that its peer has granted.
// ErrNoRoom says that each of those that are there has a right to the memory.
func (s *Sender) Open(session, from, credit uint64) error {
	if s.streams[session] != nil {
		panic(fmt.Sprintf("stripe: session %#x is there already", session))
	}
	if !s.HasRoom() {
		return ErrNoRoom
	}
	s.opened.add(session)
	s.streams[session] = &outgoing{session: session, from: from, tail: from, reached: from, floor: from, credit: credit}
	return nil
}

// HasRoom reports whether there is memory for another session.
func (s *Sender) HasRoom() bool {
	return uint64(len(s.streams)+1)*MinWindow+s.beyond <= s.memory
}

// Gone says that there was a session that is not there any more: what comes of it is late, and no fault.
func (s *Sender) Gone(session uint64) { s.opened.add(session) }

// Close forgets a session; its slots are freed.
func (s *Sender) Close(session uint64) {
	o := s.streams[session]
	if o == nil {
		return
	}
	s.release(o, o.tail)
	o.end = ending{done: true}
	s.touch(o)
	delete(s.streams, session)
}

// Room is how many bytes of the session may be read from its end host now: what the peer has memory for, and the
// sender. What is free is never given to one session whole, so that there is something for the next.
func (s *Sender) Room(session uint64) int {
	o := s.streams[session]
	if o == nil || o.end.kind != 0 || o.chunks.len() >= MaxChunks || o.credit <= o.tail {
		return 0
	}
	// What it takes of the free part is no more than what stays free.
	free, have, right := s.memory-min(uint64(len(s.streams))*MinWindow+s.beyond, s.memory), o.beyond(), uint64(0)
	if kept := o.tail - o.from; kept < MinWindow {
		right = MinWindow - kept
	}
	if free > have {
		right += (free - have) / 2
	}
	return int(min(o.credit-o.tail, right))
}

// Push gives the sender bytes that were read. They follow those before them; in the same slot they join the last chunk,
// while that waits. It panics where they do not follow: that is the driver's bug.
func (s *Sender) Push(session uint64, c Chunk) {
	o := s.streams[session]
	if o == nil || c.Offset != o.tail || c.Length == 0 || c.Length > MaxChunk || o.end.kind != 0 {
		panic(fmt.Sprintf("stripe: chunk %+v does not follow what session %#x has", c, session))
	}
	had := o.beyond()
	if n := o.chunks.len(); n > 0 && n > o.next && o.chunks.at(n-1).joins(c) {
		o.chunks.at(n - 1).Length += c.Length
	} else {
		if n == 0 { // all that was in the slot is acknowledged, but the driver goes on with it
			s.freed = slices.DeleteFunc(s.freed, func(slot uint32) bool { return slot == c.Slot })
		}
		o.chunks.push(kept{Chunk: c})
	}
	o.tail = c.End()
	s.beyond += o.beyond() - had
	s.touch(o)
}

// joins reports whether c goes on where k ends, in the stream and in the slot, and may go out with it.
func (k *kept) joins(c Chunk) bool {
	return !k.sent && !k.arrived && k.Slot == c.Slot && k.At+k.Length == c.At && k.Length+c.Length <= MaxChunk
}

// beyond is how many bytes are kept beyond what each stream has a right to.
func (o *outgoing) beyond() uint64 {
	if have := o.tail - o.from; have > MinWindow {
		return have - MinWindow
	}
	return 0
}

// End says that the stream is complete: its end host sent FIN.
func (s *Sender) End(session uint64) {
	if o := s.streams[session]; o != nil && o.end.kind == 0 {
		o.end.kind = frame.TypeEnd
		s.ending(o)
	}
}

// Abort says that the stream ends behind what was pushed, without its end.
func (s *Sender) Abort(session uint64, cause frame.Cause) {
	if o := s.streams[session]; o != nil && o.end.kind != frame.TypeAbort && !o.end.done {
		// An END before it may have gone out, and a STATE that is under way may say that it arrived: that is no fault of who says it.
		o.end = ending{kind: frame.TypeAbort, ready: o.end.ready, looked: o.end.looked, sent: o.end.sent}
		o.cause = cause
		s.ending(o)
	}
}

// ending has the stream's END or ABORT sent.
func (s *Sender) ending(o *outgoing) {
	if o.end.kind != 0 && !o.end.ready && !o.end.done {
		o.end.ready, o.end.until = true, time.Time{}
		s.endings.push(o)
	}
}

// Ended reports whether the end host has acknowledged the stream with its end, or was reset: nothing more is to be sent.
func (s *Sender) Ended(session uint64) bool {
	o := s.streams[session]
	return o != nil && o.end.done
}

// Kept is what the sender still has of the stream: what RESUME tells.
func (s *Sender) Kept(session uint64) (r frame.Range, ended bool) {
	if o := s.streams[session]; o != nil {
		r, ended = frame.Range{From: o.from, To: o.tail}, o.end.kind == frame.TypeEnd
	}
	return r, ended
}

// Backlog is how many bytes of the session may go out now, and no connection takes them.
func (s *Sender) Backlog(session uint64) uint64 {
	if o := s.streams[session]; o != nil {
		return o.pending
	}
	return 0
}

// Backlogs are how many sessions have bytes that may go out now.
func (s *Sender) Backlogs() (sessions int) {
	if s.backlog == 0 {
		return 0
	}
	for _, o := range s.streams {
		if o.pending > 0 {
			sessions++
		}
	}
	return sessions
}

// HasCredit reports whether the peer has room for more than was pushed.
func (s *Sender) HasCredit(session uint64) bool {
	o := s.streams[session]
	return o != nil && o.credit > o.tail
}

// Freed are the slots that no chunk needs any more, whether the driver meant to add to them or not. The result is valid
// until the next call of any method.
func (s *Sender) Freed() []uint32 {
	all := s.freed
	s.freed = s.freed[:0]
	return all
}

// Deadline is when connections that have room should ask again, though nothing has changed; zero: never. Expire takes a
// deadline away that is reached.
func (s *Sender) Deadline() time.Time { return s.look }

// Expire is called at the deadline, before connections ask again.
func (s *Sender) Expire(now time.Time) {
	if !s.look.IsZero() && !now.Before(s.look) {
		s.look = time.Time{}
	}
}

// lookAt moves the deadline to t, if that is sooner.
func (s *Sender) lookAt(t time.Time) {
	if s.look.IsZero() || t.Before(s.look) {
		s.look = t
	}
}

func (s *Sender) release(o *outgoing, offset uint64) {
	had := o.beyond()
	s.freed = o.release(offset, s.freed)
	s.beyond -= had - o.beyond()
}

// touch brings up to date what depends on a stream's chunks and credit.
func (s *Sender) touch(o *outgoing) {
	n := o.ready()
	s.backlog += n - o.pending
	o.pending = n
	if n > 0 && !o.inTurn {
		o.inTurn, o.deficit = true, quantum
		s.turns.push(o)
	}
}
