package controld

import (
	"context"
	"errors"
	"time"
)

// errStopping is what callers get who ask while the controller ends.
var errStopping = errors.New("the controller is stopping")

// most is how many requests are worked off before what follows from them is sent. A single one is
// sent at once: nothing waits for others to come.
const most = 256

// maxRest bounds how long requests wait for others after a large batch: what follows from thousands of hosts that
// come at once is worth computing and sending once, not once for each of them.
const maxRest = 50 * time.Millisecond

// A loop runs functions one after the other: the only goroutine that touches the network's state.
type loop struct {
	inbox chan func()
	done  chan struct{}
}

func newLoop() *loop { return &loop{inbox: make(chan func(), most), done: make(chan struct{})} }

// run works until ctx ends; after each batch it calls flush, which takes half of the time at most: as long as one
// took, requests gather before the next.
func (l *loop) run(ctx context.Context, flush func()) {
	defer close(l.done)
	var rested time.Time
	for {
		select {
		case f := <-l.inbox:
			f()
		case <-ctx.Done():
			return
		}
		l.more()
		l.gather(ctx, time.Until(rested))
		start := time.Now()
		flush()
		end := time.Now()
		rested = end.Add(min(end.Sub(start), maxRest))
	}
}

// gather works off what comes within d.
func (l *loop) gather(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case f := <-l.inbox:
			f()
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// more works off what waits already.
func (l *loop) more() {
	for range most {
		select {
		case f := <-l.inbox:
			f()
		default:
			return
		}
	}
}

// post hands f to the loop and does not wait for it to run.
func (l *loop) post(f func()) bool {
	select {
	case l.inbox <- f:
		return true
	case <-l.done:
		return false
	}
}

// ask runs f in the loop and waits for it.
func (l *loop) ask(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	if !l.post(func() { f(); close(ran) }) {
		return errStopping
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// after runs f in the loop once d has passed, by the monotonic clock.
func (l *loop) after(d time.Duration, f func()) { time.AfterFunc(d, func() { l.post(f) }) }
