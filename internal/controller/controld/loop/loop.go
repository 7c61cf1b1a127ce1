// Package loop runs what a controller does, one function after the other.
package loop

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrStopping is what callers get who ask while the controller ends.
var ErrStopping = errors.New("the controller is stopping")

// most is how many requests are worked off before what follows from them is sent. A single one is
// sent at once: nothing waits for others to come.
const most = 256

// maxRest bounds how long requests wait for others after a large batch: what follows from thousands of hosts that
// come at once is worth computing and sending once, not once for each of them.
const maxRest = 50 * time.Millisecond

// A Loop runs functions one after the other: the only goroutine that touches the network's state.
type Loop struct {
	inbox chan func()
	done  chan struct{}
}

// New makes one that nobody runs yet: what is posted waits.
func New() *Loop { return &Loop{inbox: make(chan func(), most), done: make(chan struct{})} }

// Run works until ctx ends; after each batch it calls flush, which takes half of the time at most: as long as one
// took, requests gather before the next.
func (l *Loop) Run(ctx context.Context, flush func()) {
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
func (l *Loop) gather(ctx context.Context, d time.Duration) {
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
func (l *Loop) more() {
	for range most {
		select {
		case f := <-l.inbox:
			f()
		default:
			return
		}
	}
}

// Post hands f to the loop and does not wait for it to run.
func (l *Loop) Post(f func()) bool {
	select {
	case l.inbox <- f:
		return true
	case <-l.done:
		return false
	}
}

// Ask runs f in the loop and waits for it. Where it fails, f has not run and will not: what f writes is the caller's again.
func (l *Loop) Ask(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	var taken atomic.Bool // by the loop, which runs f, or by the caller, who has given up
	if !l.Post(func() {
		if taken.CompareAndSwap(false, true) {
			f()
			close(ran)
		}
	}) {
		return ErrStopping
	}
	select {
	case <-ran:
	case <-l.done: // whatever ran has ended before
		if taken.CompareAndSwap(false, true) {
			return ErrStopping
		}
	case <-ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-ran
	}
	return nil
}

// After runs f in the loop once d has passed, by the monotonic clock.
func (l *Loop) After(d time.Duration, f func()) { time.AfterFunc(d, func() { l.Post(f) }) }

// During runs f in the loop once d has passed, unless ctx ends before: from then on nothing holds f, nor what it refers
// to. Only the loop calls it.
func (l *Loop) During(ctx context.Context, d time.Duration, f func()) {
	type waiting struct {
		run    func()
		forget func() bool // ends the watch over ctx
	}
	w := &waiting{run: f}
	var kept atomic.Pointer[waiting] // the timer refers to it alone: the runtime keeps a stopped one for a while
	kept.Store(w)
	timer := time.AfterFunc(d, func() {
		l.Post(func() {
			if w := kept.Load(); w != nil && w.forget() {
				w.run()
			}
		})
	})
	w.forget = context.AfterFunc(ctx, func() {
		timer.Stop()
		kept.Store(nil)
	})
}
