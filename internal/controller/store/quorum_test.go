package store

import (
	"context"
	"testing"
	"time"
)

// Two of three die as by kill -9, the one that leads among them: nobody gives a lease back, and no write can end it. The
// one that is left must not go on saying who leads.
func TestWhoIsLeftAloneSaysThatNobodyCanTellWhoLeads(t *testing.T) {
	c := newTrio(t)
	for _, name := range []string{"c1", "c2", "c3"} {
		c.start(name, Cluster{Members: c.members})
	}
	lead(t, c.open["c1"])
	type word struct {
		running []Candidate
		err     error
	}
	said := make(chan word, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.open["c3"].Candidates(ctx, func(running []Candidate, err error) {
		select {
		case said <- word{running, err}:
		default:
		}
	})
	wait := func(what string, ok func(word) bool) {
		t.Helper()
		deadline := time.After(patience)
		for {
			select {
			case w := <-said:
				if ok(w) {
					return
				}
			case <-deadline:
				t.Fatalf("in %v nobody said that %s", patience, what)
			}
		}
	}
	wait("c1 leads", func(w word) bool { return w.err == nil && len(w.running) == 1 && w.running[0].Name == "c1" })
	c.stop("c2")
	c.stop("c1")
	wait("it cannot be known", func(w word) bool { return w.err != nil })
	c.start("c2", Cluster{Members: c.members})
	wait("the lease of c1 has ended", func(w word) bool { return w.err == nil && len(w.running) == 0 })
}
