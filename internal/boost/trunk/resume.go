package trunk

import (
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// Up says that there is a control connection to a worker of the other agent, and the secret of the data connections that
// come now. Those of before end. Where the worker is another one than before, what the former one said of credit and of
// ranges is void.
//
// down says that this control connection has ended. One that another has followed meanwhile takes nothing away: an agent
// that stood still finds both when it goes on, the next one to greet and the end of the last one, in any order.
func (t *Trunk) Up(secret seal.Secret, incarnation uint64) (down func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.secret, t.up = secret, true
	t.drop()
	if t.peer != 0 && incarnation != t.peer {
		t.sender.PeerRestarted()
		t.receiver.PeerRestarted()
		t.resumed, t.resuming = map[uint64]struct{}{}, time.Now()
	}
	if t.Keep != nil && incarnation != t.peer {
		t.Keep.Met(incarnation)
	}
	t.peer = incarnation
	t.changed()
	t.controls++
	number := t.controls
	return func() { t.down(number) }
}

func (t *Trunk) down(number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number != t.controls {
		return
	}
	t.up = false
	t.drop()
}

// drop ends all data connections; their readers take them away.
func (t *Trunk) drop() {
	for _, c := range t.conns {
		c.conn.Close()
	}
}

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
	if err := t.sender.Resume(&m); err != nil {
		return err
	}
	if err := t.receiver.Resume(now, &m); err != nil {
		return err
	}
	if s := t.sessions[m.Session]; s != nil {
		wake(s.ready)
	}
	return nil
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
		asks := s.mine && s.state == asking // OPEN is said again, and the new worker answers
		switch {
		case named || asks:
		case s.sent && s.arrived: // what it was to hear was that both streams have ended
			s.forget()
		default:
			s.giveUp(frame.Lost)
		}
	}
	t.resumed = nil
}
