package trunk

import (
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// Far more are refused than there are reasons remembered, before one is told: what is said of the first ones is RETIRE.
func TestRefusalsThatAreForgottenAreTold(t *testing.T) {
	r := newRig(t, 1)
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	for id := uint64(1); id <= 2*(refusalsKept+1); id += 2 {
		r.near.refused.add(id, frame.NoRoom)
		r.near.say(control{typ: frame.TypeRefused, session: id})
	}
	c := r.near.conns[1]
	said := map[frame.Type]int{}
	for b := r.near.nextControl(c, nil); len(b) > 0; b = r.near.nextControl(c, nil) {
		said[frame.Type(b[0])]++
	}
	if said[frame.TypeRetire] != 1 || said[frame.TypeRefused] != refusalsKept {
		t.Errorf("said: %v", said)
	}
}

// An agent that speaks of sessions that are gone, and reads nothing, has this end keep no more than a bounded number of answers, and
// its connection ends then. A session that it names again and again is answered once.
func TestAnswersToWhoDoesNotReadAreBounded(t *testing.T) {
	safety.Test(t, safety.Door)
	r := newRig(t, 0)
	a, b := pair(t)
	defer b.Close()
	for _, err := range []error{a.SetWriteBuffer(1), b.SetReadBuffer(1)} { // the kernel's least
		if err != nil {
			t.Fatal(err)
		}
	}
	c := newConnection(only(r.near), a, 1, r.secret)
	if err := r.near.add(c, r.secret); err != nil {
		t.Fatal(err)
	}
	r.near.mu.Lock()
	r.near.receiver.Gone(1<<40 + 1)
	r.near.mu.Unlock()
	says := func(session uint64) error { return r.near.arrived(c, frame.Chunk(session, 0, 4), []byte("data")) }
	for range 1000 {
		if err := says(1); err != nil {
			t.Fatal(err)
		}
	}
	waits := func() int {
		r.near.mu.Lock()
		defer r.near.mu.Unlock()
		return len(r.near.unsaid.list)
	}
	if n := waits(); n > 1 {
		t.Errorf("%d answers wait about one session", n)
	}
	var err error
	for session := uint64(3); err == nil && session < 8*mostGone; session += 2 {
		err = says(session)
	}
	if !errors.Is(err, errUnheard) {
		t.Errorf("the last of %d words that nobody hears an answer to: %v", 4*mostGone, err)
	}
	if n := waits(); n > mostGone+1 {
		t.Errorf("%d answers wait", n)
	}
}

// What was to be said of sessions that have ended meanwhile counts as well.
func TestAnswersAboutSessionsThatEndedCount(t *testing.T) {
	safety.Test(t, safety.Door)
	r := newRig(t, 0)
	a, b := pair(t)
	defer b.Close()
	c := newConnection(only(r.near), a, 1, r.secret) // nobody writes to it
	r.near.mu.Lock()
	r.near.conns[c.id] = c
	for session := uint64(1); session <= 2*(mostGone+1); session += 2 {
		r.near.sessions[session] = &Session{}
		r.near.say(control{typ: frame.TypeRetire, session: session})
		delete(r.near.sessions, session)
	}
	r.near.mu.Unlock()
	if err := r.near.arrived(c, frame.Chunk(1, 0, 4), []byte("data")); !errors.Is(err, errUnheard) {
		t.Error(err)
	}
	r.near.mu.Lock()
	delete(r.near.conns, c.id)
	r.near.mu.Unlock()
	a.Close()
}
