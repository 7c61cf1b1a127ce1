package trunk

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// A Session is one boosted connection, at one of its two agents. All fields are under the trunk's lock, unless they say
// otherwise.
type Session struct {
	t     *Trunk
	id    uint64
	open  frame.Open
	mine  bool // it was opened here: the end host is the client
	state state
	begun context.CancelFunc // ends the attempt to connect to the server

	answer chan error // to Open, once
	early  earlier
	end    Attached // set once, before the goroutines of the session
	room   chan struct{}
	ready  chan struct{}

	at        time.Time // when it was opened
	slot      filling
	read      uint64 // bytes of the end host so far
	written   uint64 // bytes to it
	whole     bool   // it has sent FIN, behind what was read
	finishing bool   // a FIN is about to go to it
	finished  bool   // it has

	restored     bool   // a worker before this one had it
	held         bool   // the next one will, too
	counted      uint64 // see Kept.Written
	acknowledged uint64 // when it was restored: what the end host had acknowledged

	sent      bool        // the stream from the end host is over at both ends: no more of it is to be told
	arrived   bool        // so is the stream to it
	aborted   bool        // by this end: what the other agent sends goes nowhere
	over      bool        // both: the end host's connection is closed here
	abandoned bool        // it is to be aborted once the other agent has answered
	cause     frame.Cause // why it did not end well
	retired   [2]bool     // RETIRE was sent, was heard

	looks looks // at what it waits for

	move move // between agents

	on map[frame.Type]connectionID // on which connection a frame went that would have to be said again
}

// A state is how far a session has come.
type state uint8

const (
	asking    state = iota // OPEN was sent, or the server is being connected to
	answered               // the far agent has the server; the near one waits for its client
	streaming              // both ends are there
)

// A Refused is why there is no session.
type Refused struct{ Reason frame.Refusal }

func (r *Refused) Error() string { return "the other agent refused the session: " + r.Reason.String() }

// Open asks the other agent for a session, and waits for the answer. A *Refused says why there is none. The session then
// waits for Attach, or Abandon.
func (t *Trunk) Open(ctx context.Context, m frame.Open) (*Session, error) {
	s, err := t.ask(m, nil)
	if err != nil {
		return nil, err
	}
	if err := s.wait(ctx); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

// wait waits for the answer to OPEN.
func (s *Session) wait(ctx context.Context) error {
	select {
	case err := <-s.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.t.ctx.Done():
		return ErrClosed
	}
}

// ask asks for a session, whose client may be there already.
func (t *Trunk) ask(m frame.Open, early *net.TCPConn) (*Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	if t.reached() == 0 {
		return nil, &Refused{frame.NoRoom} // nobody would hear of it before the client asks again
	}
	m.Session = t.last + 2
	s, credit, err := t.begin(m, 0)
	if err != nil {
		return nil, &Refused{frame.NoRoom}
	}
	t.last = m.Session
	s.mine, s.open.Credit = true, credit
	if early != nil {
		s.early = earlier{early, make(chan struct{})}
		t.sender.Early(s.id)
		t.all.Go(s.foresee)
	}
	t.say(control{typ: frame.TypeOpen, session: s.id})
	t.changed()
	return s, nil
}

// begin adds a session to both engines.
func (t *Trunk) begin(m frame.Open, credit uint64) (s *Session, own uint64, err error) {
	if err := t.sender.Open(m.Session, 0, credit); err != nil {
		return nil, 0, err
	}
	own, err = t.receiver.Open(m.Session, 0)
	if err != nil {
		t.sender.Close(m.Session)
		return nil, 0, err
	}
	return t.newSession(m), own, nil
}

func (t *Trunk) newSession(m frame.Open) *Session {
	s := &Session{
		t: t, id: m.Session, open: m, answer: make(chan error, 1),
		room: make(chan struct{}, 1), ready: make(chan struct{}, 1), on: map[frame.Type]connectionID{}, at: time.Now(),
	}
	t.sessions[s.id] = s
	return s
}

// Attach gives a session that was opened here the connection to its client.
func (s *Session) Attach(a Attached) {
	s.keep(a)
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.attach(a)
}

func (s *Session) attach(a Attached) {
	s.end = a
	if s.over || s.t.closed {
		s.resetEnd()
		return
	}
	s.state = streaming
	said := frame.TypeOpened
	if s.move.ask != nil {
		said = frame.TypeTaken
	}
	s.t.say(control{typ: said, session: s.id})
	if s.move.told != nil { // it came before this
		s.note()
	}
	s.start(s.input)
	s.start(s.output)
	s.t.changed()
}

// Abandon ends a session that was opened here and has no client any more. Where the answer is still on its way the other
// agent hears of it once it has come: an ABORT might overtake its OPEN on another connection.
func (s *Session) Abandon() {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if s.state == asking {
		s.abandoned = true
		return
	}
	s.abort(frame.Reset)
	s.t.changed()
}

// abort ends both streams from this end.
func (s *Session) abort(cause frame.Cause) {
	if s.aborted || s.t.sessions[s.id] != s {
		return
	}
	s.aborted, s.cause = true, cause
	s.t.sender.Abort(s.id, cause)
	s.arrived = true // what comes goes nowhere
	s.hangUp()
	s.settle()
}

// giveUp forgets a session whose other agent is not there to hear of it.
func (s *Session) giveUp(cause frame.Cause) {
	if s.t.sessions[s.id] != s {
		return
	}
	s.cause = cause
	s.hangUp()
	s.forget()
}

// hangUp resets the end host.
func (s *Session) hangUp() {
	s.over = true
	if s.begun != nil {
		s.begun()
	}
	if s.end.Conn != nil {
		s.resetEnd()
	}
	s.reply(ErrClosed)
	wake(s.room)
	wake(s.ready)
}

// reply answers who waits in Open, if nobody has before.
func (s *Session) reply(err error) {
	select {
	case s.answer <- err:
	default:
	}
}

// resetEnd closes the connection to the end host by RST: the stream to it is not whole.
func (s *Session) resetEnd() {
	reset(s.end.Conn)
	s.release()
}

// reset closes a connection by RST. Where another process holds it as well it is closed with the last one's descriptor,
// and a worker that finds it before sees by SO_LINGER what was meant.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// settle retires a session whose two streams are over.
func (s *Session) settle() {
	if !s.sent && s.t.sender.Ended(s.id) {
		s.sent = true
	}
	if !s.sent || !s.arrived {
		return
	}
	if !s.over {
		s.over = true
		s.end.Conn.Close() // FIN went out and was acknowledged, or it was reset before
		s.release()
		wake(s.room)
	}
	if !s.retired[0] {
		s.retired[0] = true
		s.t.say(control{typ: frame.TypeRetire, session: s.id})
	}
	if s.retired[1] {
		s.forget()
	}
}

// forget takes a session out of all that knows it. One that was to be taken over and was not is told of by who asked.
func (s *Session) forget() {
	s.drop()
	if s.t.Ended != nil && (s.move.ask == nil || s.end.Conn != nil) {
		e := Ended{Session: s.id, Client: s.open.Client.String(), Server: s.open.Server.String(), Cause: s.cause, Sent: s.read, Received: s.written, End: s.own()}
		s.t.all.Go(func() { s.t.Ended(e) })
	}
}

// drop takes a session out of the trunk.
func (s *Session) drop() {
	s.t.sender.Close(s.id)
	s.t.receiver.Close(s.id)
	s.t.slots.leave(s)
	delete(s.t.sessions, s.id)
	delete(s.t.unacked, s)
	delete(s.t.starved, s)
}

// connect connects to the server of a session that the other agent has opened.
func (t *Trunk) connect(ctx context.Context, s *Session) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Patience, os.ErrDeadlineExceeded)
	defer cancel()
	a, err := t.Connect(ctx, s.open)
	if err == nil {
		s.keep(a)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.sessions[s.id] != s || s.over:
		if err == nil {
			s.end = a
			s.resetEnd()
		}
	case err != nil:
		s.refuse(err)
	default:
		s.attach(a)
	}
	t.changed()
}

// refuse answers an OPEN that comes to nothing.
func (s *Session) refuse(err error) {
	reason := frame.Silence
	if r, ok := err.(*Refused); ok { //nolint:errorlint // Connect's contract: as it is
		reason = r.Reason
	}
	s.over, s.cause = true, frame.Reset
	s.forget()
	s.t.refused.add(s.id, reason)
	s.t.say(control{typ: frame.TypeRefused, session: s.id})
}

func (s *Session) String() string {
	return fmt.Sprintf("session %#x, %v to %v", s.id, s.open.Client, s.open.Server)
}
