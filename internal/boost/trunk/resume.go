package trunk

import (
	"cmp"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// takeResume is how far a session has come at the other agent's new worker. What it has not named when it has told all
// is gone with the former one.
func (t *Trunk) takeResume(now time.Time, h frame.Header, payload []byte) error {
	m, err := frame.ParseResume(h, payload)
	if err != nil {
		return err
	}
	if m.Session == 0 {
		t.allResumed()
		return nil
	}
	if t.resumed != nil {
		t.resumed[m.Session] = struct{}{}
	}
	if t.sessions[m.Session] == nil { // of a worker of ours before, whom it did not outlive: the other agent gives it up
		t.sender.Gone(m.Session)
		t.receiver.Gone(m.Session)
		return stripe.ErrRetired
	}
	s := t.sessions[m.Session]
	if err := cmp.Or(t.sender.Resume(&m), t.receiver.Resume(now, &m)); err != nil {
		return t.disagree(s, err)
	}
	wake(s.ready)
	return nil
}

// disagree ends a session of which the two agents say what does not fit: a worker was killed at a moment that nobody has
// thought of. It costs this session, not all that go over the same connection, at each attempt to make it again.
func (t *Trunk) disagree(s *Session, err error) error {
	if t.Broken != nil {
		t.all.Go(func() { t.Broken(err) })
	}
	s.lose()
	return stripe.ErrRetired
}

// unresumed ends the wait for a new worker's word that does not come.
func (t *Trunk) unresumed(now time.Time) {
	if t.resumed != nil && !now.Before(t.resuming.Add(t.Patience)) {
		t.allResumed()
	}
}

func (t *Trunk) allResumed() {
	if t.resumed == nil {
		return
	}
	for id, s := range t.sessions {
		_, named := t.resumed[id]
		asks := s.mine && s.state == asking && !s.exposed() // OPEN is said again, and the new worker answers
		switch {
		case named || asks:
		case s.sent && s.arrived: // what it was to hear was that both streams have ended
			s.forget()
		default:
			s.lose()
		}
	}
	t.resumed = nil
	t.met()
}

func (t *Trunk) met() {
	if t.Keep != nil {
		t.Keep.Met(t.peer)
	}
}
