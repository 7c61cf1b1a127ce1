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

// A loop runs functions one after the other: the only goroutine that touches the network's state.
type loop struct {
	inbox chan func()
	done  chan struct{}
}

func newLoop() *loop { return &loop{inbox: make(chan func(), most), done: make(chan struct{})} }

// run works until ctx ends; after each batch it calls flush.
func (l *loop) run(ctx context.Context, flush func()) {
	defer close(l.done)
	for {
		select {
		case f := <-l.inbox:
			f()
		case <-ctx.Done():
			return
		}
		l.more()
		flush()
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
