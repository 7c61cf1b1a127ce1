package hostd

import (
	"testing"
	"time"
)

// A loop that is slow lives; one that does nothing any more does not, and the edge is to find that out.
func TestASlowLoopIsAliveAndAStoppedOneIsNot(t *testing.T) {
	d := &loop{ctx: t.Context(), inbox: make(chan func(), 1)}
	d.inbox <- func() {}
	beat, alive, posted := make(chan time.Time), 0, make(chan bool)
	go func() {
		d.postOrBeat(func() {}, beat, func() error { alive++; return nil })
		close(posted)
	}()
	beat <- time.Time{} // nothing was done since
	d.turns.Add(1)
	beat <- time.Time{} // the one before has been looked at
	beat <- time.Time{}
	<-d.inbox
	<-posted
	if alive != 1 {
		t.Errorf("alive %d times, want once: for the one turn of the loop", alive)
	}
}
