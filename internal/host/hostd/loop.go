package hostd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A loop is what other goroutines want done, one after the other, by the one that owns the daemon's state.
type loop struct {
	ctx   context.Context // of everything but the shutDown
	inbox chan func()     // what other goroutines want done
	held  []func()        // taken from inbox and not done yet
	turns atomic.Uint64   // what was done of it
}

// post hands f to the loop.
func (l *loop) post(f func()) {
	select {
	case l.inbox <- f:
	case <-l.ctx.Done():
	}
}

// postUntil hands f to the loop, unless ctx ends first: of a goroutine that the loop waits for.
func (l *loop) postUntil(ctx context.Context, f func()) {
	select {
	case l.inbox <- f:
	case <-ctx.Done():
	}
}

// call runs f in the loop and waits for it; false means that the daemon is leaving.
func (l *loop) call(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	l.post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
	return false
}

func (l *loop) turn(f func()) {
	f()
	l.turns.Add(1)
}

// more does what else is posted already, so that a burst of events makes one report.
func (l *loop) more() {
	for len(l.held) > 0 {
		f := l.held[0]
		l.held = l.held[1:]
		l.turn(f)
	}
	for range cap(l.inbox) {
		select {
		case f := <-l.inbox:
			l.turn(f)
		default:
			return
		}
	}
}

// later does f after what the loop does now. It is called in the loop.
func (l *loop) later(f func()) { l.held = append(l.held, f) }

// waitFor waits in the loop for a goroutine that posts, and keeps what is posted meanwhile for later.
func (l *loop) waitFor(done <-chan struct{}) {
	for {
		select {
		case f := <-l.inbox:
			l.held = append(l.held, f)
		case <-done:
			return
		}
	}
}

// drainUntil lets goroutines that post get rid of it.
func (l *loop) drainUntil(done <-chan struct{}) {
	for {
		select {
		case <-l.inbox:
		case <-done:
			return
		}
	}
}

// postOrBeat posts, and shows the edge meanwhile that the daemon lives. Where thousands of flows fail at once on a busy machine,
// the loop has no room for seconds, and the edge would take a daemon that does not read for one that is away: clients then
// get a reset instead of another instance. As long as the loop gets on, slowly, alive is called at each beat.
func (l *loop) postOrBeat(f func(), beat <-chan time.Time, alive func() error) {
	for done := l.turns.Load(); ; {
		select {
		case l.inbox <- f:
			return
		case <-l.ctx.Done():
			return
		case <-beat:
			if now := l.turns.Load(); now != done {
				done = now
				alive() //nolint:errcheck // of an edge that is closed; then ReadEvent says so
			}
		}
	}
}

func closedBy(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	return done
}
