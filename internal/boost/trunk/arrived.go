package trunk

import (
	"context"
	"errors"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// arrived takes a frame of the other agent. An error ends the connection that carried it. What is read of one that has ended here
// is not taken: it may be of a worker that another one has followed, and say of chunks that they have arrived which that one has
// not. Who has sent it says it again.
func (t *Trunk) arrived(by *connection, h frame.Header, payload []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || by.dropped || t.conns[by.id] != by {
		return ErrClosed
	}
	if t.unheard() {
		return errUnheard
	}
	by.path.counts(h, &by.path.received)
	err := t.take(time.Now(), h, payload)
	if errors.Is(err, stripe.ErrRetired) {
		t.say(control{typ: t.gone(h.Session), session: h.Session})
		err = nil
	}
	t.changed()
	return err
}

// gone is what is said of a session that is no more. What comes early of one that was refused is told that again: the first
// word of it may come later than this one, by another connection.
func (t *Trunk) gone(session uint64) frame.Type {
	if t.refused.of(session) != 0 {
		return frame.TypeRefused
	}
	return frame.TypeRetire
}

func (t *Trunk) take(now time.Time, h frame.Header, payload []byte) error {
	switch h.Type {
	case frame.TypeData:
		return t.takeData(now, h, payload)
	case frame.TypeState:
		return t.takeState(h, payload)
	case frame.TypeEnd:
		return t.takeEnd(h, t.receiver.End(now, h))
	case frame.TypeAbort:
		m, err := frame.ParseAbort(h, payload)
		if err != nil {
			return err
		}
		return t.takeAbort(m, t.receiver.Abort(now, m))
	case frame.TypeOpen:
		return t.takeOpen(h, payload)
	case frame.TypeOpened:
		return t.takeOpened(h, payload)
	case frame.TypeRefused:
		return t.takeRefused(h, payload)
	case frame.TypeTakeover:
		return t.takeTakeover(h, payload)
	case frame.TypeTaken:
		return t.takeTaken(h, payload)
	case frame.TypeRetire:
		t.takeRetire(h.Session)
	case frame.TypeResume:
		return t.takeResume(now, h, payload)
	}
	return nil // PING belongs to the control connection; HELLO has been said
}

// takeData copies what is new of a chunk to its places.
func (t *Trunk) takeData(now time.Time, h frame.Header, payload []byte) error {
	var room [16]stripe.Place
	places, err := t.receiver.Arrive(now, h, room[:0])
	if err != nil {
		return err
	}
	all := t.Receive.Bytes()
	for _, p := range places {
		copy(all[int(p.Block)*stripe.Block+int(p.At):][:p.Length], payload[p.InPacket:])
	}
	if s := t.sessions[h.Session]; s != nil && len(places) > 0 {
		wake(s.ready)
	}
	return nil
}

func (t *Trunk) takeState(h frame.Header, payload []byte) error {
	var room [frame.MaxRanges]frame.Range
	m, err := frame.ParseState(h, payload, room[:0])
	if s := t.sessions[h.Session]; s != nil && s.waits() && err == nil {
		s.stash(m)
		return nil
	}
	if err == nil {
		err = t.sender.State(&m)
	}
	if s := t.sessions[h.Session]; s != nil && err == nil {
		s.settle()
	}
	return err
}

func (t *Trunk) takeEnd(h frame.Header, err error) error {
	if s := t.sessions[h.Session]; s != nil && err == nil {
		wake(s.ready)
	}
	return err
}

// takeAbort has a session end: what comes before the ABORT is still delivered, and nothing more is sent.
func (t *Trunk) takeAbort(m frame.Abort, err error) error {
	s := t.sessions[m.Session]
	if s == nil || err != nil {
		return err
	}
	if s.cause == 0 {
		s.cause = m.Cause
	}
	s.sent = true
	if s.end.Conn == nil { // nobody will deliver anything
		s.hangUp()
		s.arrived = true
		t.receiver.Acknowledged(time.Now(), s.id, 0, true)
	}
	wake(s.room)
	wake(s.ready)
	s.settle()
	return nil
}

// asked looks at a session that the other agent asks for. One that it has asked for before is answered again: the session that there
// is, or its refusal. A fresh one is to begin.
func (t *Trunk) asked(h frame.Header, answer frame.Type) (there *Session, fresh bool, err error) {
	if (h.Session&1 == 0) == t.Dials {
		return nil, false, &stripe.Violation{Rule: stripe.UnknownSession, Frame: h.Type, Session: h.Session}
	}
	if s := t.sessions[h.Session]; s != nil {
		if s.state != asking {
			t.say(control{typ: answer, session: s.id})
		}
		return s, false, nil
	}
	if t.refused.of(h.Session) != 0 {
		t.say(control{typ: frame.TypeRefused, session: h.Session})
		return nil, false, nil
	}
	if !t.opened.take(h.Session / 2) {
		return nil, false, stripe.ErrRetired
	}
	return nil, true, nil
}

// takeOpen begins a session that the other agent asks for; one that it asks for again is answered again.
func (t *Trunk) takeOpen(h frame.Header, payload []byte) error {
	m, err := frame.ParseOpen(h, payload)
	if err != nil {
		return err
	}
	s, fresh, err := t.asked(h, frame.TypeOpened)
	switch {
	case err != nil:
		return err
	case s != nil:
		// A worker of ours that has found the session has heard of no credit, and who asks says nothing else of it.
		if kept, _ := t.sender.Kept(s.id); kept.From > 0 {
			return nil // it has its answer: this OPEN was said again because its connection died
		}
		return t.sender.State(&frame.State{Session: m.Session, Credit: m.Credit})
	case !fresh:
		return nil
	}
	s, _, err = t.begin(m, m.Credit)
	if err != nil {
		t.sender.Gone(m.Session) // what follows its OPEN is no fault
		t.receiver.Gone(m.Session)
		t.refused.add(m.Session, frame.NoRoom)
		t.say(control{typ: frame.TypeRefused, session: m.Session})
		return nil
	}
	ctx, cancel := context.WithCancel(t.ctx)
	s.begun = cancel
	t.all.Go(func() {
		defer cancel()
		t.connect(ctx, s)
	})
	return nil
}

// takeOpened is the answer to OPEN, with the credit that the other agent grants.
func (t *Trunk) takeOpened(h frame.Header, payload []byte) error {
	m, err := frame.ParseOpened(h, payload)
	s := t.sessions[h.Session]
	if err != nil || s == nil {
		return err
	}
	if s.mine && s.move.ask != nil { // TAKEN is the answer
		return nil
	}
	s.hear(&m)
	if !s.mine || s.state != asking {
		return nil
	}
	s.state = answered
	t.sender.Answered(s.id)
	if s.abandoned {
		s.abort(frame.Reset)
		return nil
	}
	s.reply(nil)
	return t.sender.State(&frame.State{Session: s.id, Credit: m.Credit})
}

func (t *Trunk) takeRefused(h frame.Header, payload []byte) error {
	m, err := frame.ParseRefused(h, payload)
	s := t.sessions[h.Session]
	if err != nil || s == nil || !s.mine || s.state != asking {
		return err
	}
	s.reply(&Refused{m.Reason})
	s.over, s.cause = true, frame.Reset
	s.forget()
	return nil
}

// takeRetire is the other agent's last word about a session: both its streams have ended there. That it says so before
// one of ours has ended means that it no longer has the session.
func (t *Trunk) takeRetire(session uint64) {
	s := t.sessions[session]
	if s == nil {
		// One of the other agent's that has not come yet is taken back: the TAKEOVER behind it is of nothing. No OPEN that is to
		// live is behind one: who opened a session retires it when it is over, and who says it again still has it.
		if (session&1 == 0) != t.Dials {
			t.opened.take(session / 2)
		}
		return
	}
	s.retired[1] = true
	if !s.sent && !s.ending() || !s.arrived {
		if s.mine && s.state == asking && !s.exposed() {
			s.reply(&Refused{frame.NoRoom})
		}
		s.lose()
		return
	}
	s.sent = true // its STATE is still on its way, on another connection
	s.settle()
}

// ending reports whether the stream from the end host has its end: what is left to hear is that it arrived.
func (s *Session) ending() bool {
	_, ended := s.t.sender.Kept(s.id)
	return ended || s.aborted
}
