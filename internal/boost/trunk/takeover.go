package trunk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// The agent beside one end host of a session may be lost, machine and all. The other one has all bytes for that end host
// which it has not acknowledged, and asks a third agent to go on with them (docs/protocol.md §9.4). Until that one has the
// connection the session stays where it is: if the lost agent is there again before, nothing has happened.

// A move is what a session has to do with that.
type move struct {
	told   *Told           // what the other agent has said of its end host; nil: it was not heard
	base   *Base           // where the kernel's counts begin; nil: with the streams
	turned bool            // the far agent has opened it, for a client
	ask    *frame.Takeover // by which it was asked for; nil: by OPEN
	taken  frame.Taken     // the answer
	early  *frame.State    // which came before the answer

	asked   bool           // another agent is being asked to go on with it
	leaving bool           // it goes on over another trunk
	hands   sync.WaitGroup // its goroutines
}

// Moves are how many sessions with the other agent were to go on with a third one.
type Moves struct {
	Made   uint64 // they did
	Failed uint64 // that one did not have them
}

// Told is what two ends of a connection said of themselves, at the other agent.
type Told struct{ Host, Own frame.Options }

// complete reports whether a socket could be restored by it: each kernel sends an MSS, and a SYN has come from the end host.
func (t *Told) complete() bool { return t != nil && t.Own.MSS != 0 && t.Host != (frame.Options{}) }

// hear notes what the other agent says of its end host, once.
func (s *Session) hear(m *frame.Opened) {
	if s.move.told != nil {
		return
	}
	s.move.told = &Told{m.Host, m.Own}
	if s.state == streaming {
		s.note()
	}
}

// A Base is of a connection that this agent has taken over.
type Base struct {
	Read, Wrote uint64 // offsets of the two streams where the kernel's counts begin
	Counted     uint64 // what Kept.Written is for others
}

// began is the offset at which the kernel's count of what was received begins.
func (m *move) began() uint64 {
	if m.base == nil {
		return 0
	}
	return m.base.Read
}

// mustNotGoOn stands in Kept.Written for a program from before Base, which would take the kernel's counts for offsets: it
// takes such a connection for one that has ended.
const mustNotGoOn = 1 << 63

// takesOver is the version from which on agents know TAKEOVER.
const takesOver = 2

// TakesOver reports whether the other agent can be asked to go on with a session.
func (t *Trunk) TakesOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version >= takesOver && t.reached() > 0
}

// Ends are the two ends of a session.
func (s *Session) Ends() frame.Open { return s.open }

// isNear reports whether the end host here is the client.
func (s *Session) isNear() bool { return s.mine != s.move.turned }

// IsNear reports whether the end host here is the client.
func (s *Session) IsNear() bool { return s.isNear() } // neither changes once a session streams

// Movable are the sessions with which another agent could go on in the place of the one at the other end. Whatever has come
// from there was written to the end host here: so nothing of it has to be taken along.
func (t *Trunk) Movable() (all []*Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		if !s.move.asked && s.movable() == nil {
			all = append(all, s)
		}
	}
	return all
}

var errNotMovable = errors.New("the session has no state with which another agent could go on")

// movable says why nobody could go on with a session.
func (s *Session) movable() error {
	delivered, arrived, over := s.t.receiver.Reach(s.id)
	kept, _ := s.t.sender.Kept(s.id)
	switch {
	case s.t.sessions[s.id] != s || s.t.closed || s.over || s.aborted || s.sent || s.arrived || s.state != streaming:
		return errNotMovable // it is over, or about to be
	case !s.move.told.complete() || over || s.t.sender.Aborted(s.id):
		return errNotMovable
	case delivered != arrived || s.written != delivered || kept.To-kept.From > frame.MaxKept:
		return errNotMovable
	}
	return nil
}

// TakeOver asks the other agent of this trunk to go on with a session of another one, and moves it here once that has the
// connection to its end host. A *Refused says that it has not; with CannotGoOn the end host was reset.
func (t *Trunk) TakeOver(ctx context.Context, s *Session) (err error) {
	ask, err := s.offer()
	if err != nil {
		return err
	}
	defer func() { s.offered(ctx, err) }()
	n, err := t.askFor(s, ask)
	if err != nil {
		return err
	}
	select {
	case err = <-n.answer:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-t.ctx.Done():
		err = ErrClosed
	}
	var load *load
	if err == nil {
		load, err = s.pack(n.move.ask, n.move.taken)
	}
	if err != nil {
		n.withdraw()
		return err
	}
	return n.unpack(load)
}

// withdraw takes a wish back: the other agent asks the end host no more, and resets it where it has it already.
func (s *Session) withdraw() {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	defer s.t.changed()
	if s.t.sessions[s.id] != s {
		return
	}
	if s.state != asking {
		s.abort(frame.Lost)
		return
	}
	s.over = true
	s.t.say(control{typ: frame.TypeRetire, session: s.id})
	s.forget()
}

// offer is the session as another agent is asked for it.
func (s *Session) offer() (m *frame.Takeover, err error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if err := s.movable(); err != nil || s.move.asked {
		return nil, cmp.Or(err, errNotMovable)
	}
	s.move.asked = true
	m = &frame.Takeover{Open: s.open, Arrived: s.written, Client: !s.isNear(), Host: s.move.told.Host, Own: s.move.told.Own}
	m.Kept, m.Ended = s.t.sender.Kept(s.id)
	return m, nil
}

// offered is the end of an offer.
func (s *Session) offered(ctx context.Context, err error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.move.asked = false
	switch {
	case err == nil:
		s.t.moves.Made++
	case !errors.Is(ctx.Err(), context.Canceled): // else nobody was lost
		s.t.moves.Failed++
	}
}

// askFor adds a session that waits for TAKEN.
func (t *Trunk) askFor(s *Session, m *frame.Takeover) (*Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	if t.version < takesOver || t.reached() == 0 {
		return nil, &Refused{frame.NoRoom}
	}
	m.Session = t.last + 2
	if err := t.sender.Open(m.Session, m.Kept.From, 0); err != nil {
		return nil, &Refused{frame.NoRoom}
	}
	credit, err := t.receiver.Open(m.Session, m.Arrived)
	if err != nil {
		t.sender.Close(m.Session)
		return nil, &Refused{frame.NoRoom}
	}
	t.last, m.Credit = m.Session, credit
	n := t.newSession(m.Open)
	n.mine, n.at, n.open.Lane = true, s.at, m.Lane
	n.move = move{ask: m, told: &Told{m.Host, m.Own}, turned: m.Client}
	t.say(control{typ: frame.TypeTakeover, session: n.id})
	t.changed()
	return n, nil
}

// waits reports whether the session waits for TAKEN.
func (s *Session) waits() bool { return s.mine && s.state == asking && s.move.ask != nil }

// stash keeps a STATE that has overtaken TAKEN: before that nobody knows what it is of.
func (s *Session) stash(m frame.State) {
	m.Ranges = slices.Clone(m.Ranges)
	if e := s.move.early; e == nil || m.Arrived >= e.Arrived && m.Credit >= e.Credit {
		s.move.early = &m
	}
}

// takeTaken is the answer to TAKEOVER: the other agent has the end host. The stream to it goes on where that stands.
func (t *Trunk) takeTaken(h frame.Header, payload []byte) error {
	m, err := frame.ParseTaken(h, payload)
	s := t.sessions[h.Session]
	if err != nil || s == nil || !s.waits() {
		return err
	}
	t.sender.Close(s.id)
	if err := t.sender.Open(s.id, m.Wanted, 0); err != nil { // others have taken its room: a session that has moved brings bytes along
		s.reply(&Refused{frame.NoRoom})
		s.over = true
		t.say(control{typ: frame.TypeRetire, session: s.id})
		s.forget()
		return nil
	}
	s.read, s.state, s.move.taken = m.Wanted, answered, m
	s.reply(nil)
	return nil
}

// A load is a session on its way from one trunk to another.
type load struct {
	end             Attached
	bytes           []byte // of the stream from the end host here, from what the other end host has acknowledged on
	written         uint64
	counted         uint64
	base            *Base
	whole, finished bool
}

// fits says why an answer is none to the session as it is now.
func (s *Session) fits(ask *frame.Takeover, m frame.Taken) error {
	if err := s.movable(); err != nil {
		return err
	}
	kept, _ := s.t.sender.Kept(s.id)
	if s.written != ask.Arrived || m.Wanted < kept.From || m.Wanted > kept.To {
		return fmt.Errorf("%v went on meanwhile: the end host wants %d, kept is %d to %d, received %d, told was %d", s, m.Wanted, kept.From, kept.To, s.written, ask.Arrived)
	}
	return nil
}

// pack stops a session and takes it out of its trunk, with its connection.
func (s *Session) pack(ask *frame.Takeover, m frame.Taken) (*load, error) {
	t := s.t
	t.mu.Lock()
	if err := s.fits(ask, m); err != nil {
		t.mu.Unlock()
		return nil, err
	}
	s.move.leaving = true
	wake(s.room)
	wake(s.ready)
	_ = s.end.Conn.SetDeadline(time.Unix(1, 0))
	t.mu.Unlock()
	s.move.hands.Wait()
	t.mu.Lock()
	if err := s.fits(ask, m); err != nil { // its end host has ended it just now
		s.abort(frame.Lost)
		t.changed()
		t.mu.Unlock()
		return nil, err
	}
	_ = s.end.Conn.SetDeadline(time.Time{})
	l := &load{end: s.end, written: s.written, counted: s.counted, base: s.move.base, whole: s.whole, finished: s.finished}
	t.sender.EachKept(s.id, func(c stripe.Chunk) {
		if c.End() > m.Wanted {
			l.bytes = append(l.bytes, t.slots.all.Bytes(c.Slot)[c.At:][:c.Length][max(m.Wanted, c.Offset)-c.Offset:]...)
		}
	})
	held := s.held
	s.over, s.held = true, false
	s.drop()
	t.changed()
	t.mu.Unlock()
	if held { // before another name for it is held: a worker after this one must not find the connection twice
		t.Keep.Release(s.id)
	}
	return l, nil
}

// unpack has a session go on over the trunk that it was asked for on.
func (s *Session) unpack(l *load) error {
	t := s.t
	t.mu.Lock()
	s.counted, s.whole, s.finished, s.move.base = l.counted, l.whole, l.finished, l.base
	kept := s.kept(l.end)
	t.mu.Unlock()
	held := t.Keep != nil && t.Keep.Hold(kept, l.end.Conn) == nil
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed()
	s.end, s.held, s.written = l.end, held, l.written
	if t.sessions[s.id] != s || s.over || t.closed {
		s.resetEnd()
		return ErrClosed
	}
	s.state = streaming
	if err := s.refill(l.bytes); err != nil {
		s.abort(frame.Lost)
		return err
	}
	t.unacked[s] = struct{}{}
	if s.whole {
		t.sender.End(s.id)
		s.start(s.watch)
	} else {
		s.start(s.input)
	}
	s.start(s.output)
	t.say(control{typ: frame.TypeOpened, session: s.id}) // of this end host: this machine may be the next that is lost
	return nil
}

// refill gives the sender bytes that the session has brought along, and what the other agent has granted.
func (s *Session) refill(bytes []byte) error {
	for len(bytes) > 0 {
		if !s.t.slots.filling(s, min(len(bytes), stripe.MaxChunk)) {
			return fmt.Errorf("%v: no memory for %d bytes that it brings along", s, len(bytes))
		}
		n := copy(s.slot.rest(), bytes)
		s.t.sender.Push(s.id, stripe.Chunk{Offset: s.read, Length: uint32(n), Slot: s.slot.number, At: uint32(s.slot.used)})
		s.read, s.slot.used, bytes = s.read+uint64(n), s.slot.used+n, bytes[n:]
	}
	m := s.move.taken
	if err := s.t.sender.State(&frame.State{Session: s.id, Acknowledged: m.Wanted, Arrived: m.Wanted, Credit: m.Credit}); err != nil {
		return err
	}
	if s.move.early != nil {
		return s.t.sender.State(s.move.early)
	}
	return nil
}

// start begins a goroutine of the session.
func (s *Session) start(f func()) {
	s.move.hands.Add(1)
	s.t.all.Go(func() {
		defer s.move.hands.Done()
		f()
	})
}

const (
	// mostAsked is how many end hosts this agent asks at a time for one other agent, each with a few kilobytes and five segments a
	// second. An agent of before asks for all its sessions at once; even so the loss of one with some thousands is not hurt.
	mostAsked = 4096
	// AsksAtOnce is how many sessions another agent is to be asked for at a time: less, as it hears late who was given up. Some
	// hundred would be too few: end hosts that are gone, too, are asked until patience is over.
	AsksAtOnce = mostAsked / 2
)

// takeTakeover is another agent's wish that this one goes on with a connection.
func (t *Trunk) takeTakeover(h frame.Header, payload []byte) error {
	m, err := frame.ParseTakeover(h, payload)
	if err != nil {
		return err
	}
	if _, fresh, err := t.asked(h, frame.TypeTaken); err != nil || !fresh {
		return err
	}
	if t.asking >= mostAsked || !t.sender.HasRoom() || !t.receiver.HasRoom() {
		t.refused.add(m.Session, frame.NoRoom)
		t.say(control{typ: frame.TypeRefused, session: m.Session})
		return nil
	}
	t.asking++
	s := t.newSession(m.Open)
	s.move.ask, s.move.turned = &m, m.Client
	ctx, cancel := context.WithCancel(t.ctx)
	s.begun = cancel
	t.all.Go(func() {
		defer cancel()
		t.goOnWith(ctx, s)
	})
	return nil
}

// goOnWith finds the end host of a session and goes on with the connection to it.
func (t *Trunk) goOnWith(ctx context.Context, s *Session) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Patience, os.ErrDeadlineExceeded)
	defer cancel()
	m := s.move.ask
	a, wants, err := Attached{}, uint64(0), error(&Refused{frame.NotMyLane})
	if t.Restore != nil {
		a, wants, err = t.Restore(ctx, *m)
	}
	if err == nil {
		s.move.base = &Base{Read: m.Arrived, Wrote: wants}
		s.keep(a)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed()
	t.asking--
	if err == nil && (t.sessions[s.id] != s || s.over || !s.admit(wants)) {
		s.end = a
		s.resetEnd()
		err = &Refused{frame.CannotGoOn}
	}
	switch {
	case t.sessions[s.id] != s || s.over:
	case err != nil:
		s.refuse(err)
	default:
		s.read, s.written = m.Arrived, wants
		s.attach(a)
	}
}

// admit gives a session to the engines.
func (s *Session) admit(wants uint64) bool {
	t, m := s.t, s.move.ask
	if t.sender.Open(m.Session, m.Arrived, m.Credit) != nil {
		return false
	}
	if _, err := t.receiver.Open(m.Session, wants); err != nil {
		t.sender.Close(m.Session)
		return false
	}
	s.move.taken.Wanted = wants
	return true
}
