package peering

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/backoff"
)

// lingers is for how long a connection that nobody wants stays: a number that is tried and not worth it is tried again soon,
// and an agent that asks for many, for few, and for many again has no more made than there may be in so long.
const lingers = 5 * time.Second

// Keepers are what keeps the data connections of one control connection, each one of them: as many as the agent wants that
// wants more, and no more than this one's file allows.
type keepers struct {
	d *Dialer
	c *control

	mu      sync.Mutex
	asked   int // by the other agent; 0: it was not heard yet
	want    int // there are to be so many
	running int
	retired int       // of them: have a connection that carries nothing more
	idle    int       // of them: pause
	unused  time.Time // since when fewer would do; zero: they would not
	again   chan struct{}
}

func (d *Dialer) keepers(c *control) *keepers {
	return &keepers{d: d, c: c, again: make(chan struct{}, 1)}
}

// wanted notes what the other agent wants.
func (k *keepers) wanted(connections int) {
	k.mu.Lock()
	was := k.asked
	k.asked = connections
	k.mu.Unlock()
	if was != connections {
		select {
		case k.again <- struct{}{}:
		default:
		}
	}
}

// run has connections begin and end until ctx ends.
func (k *keepers) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	later := time.NewTimer(time.Hour)
	defer later.Stop()
	for {
		begin, in := k.next(time.Now())
		for range begin {
			all.Go(func() { k.keep(ctx) })
		}
		later.Reset(in)
		select {
		case <-k.again:
		case <-k.d.Path.Rethinks():
		case <-later.C:
		case <-ctx.Done():
			return
		}
	}
}

// next is how many keepers begin, and when to look again. More there are at once, fewer when that many have been unused for a
// while.
func (k *keepers) next(now time.Time) (begin int, in time.Duration) {
	own := k.d.Path.Wants()
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(max(own, k.asked), k.d.Connections)
	wait := cmp.Or(k.d.Lingers, lingers)
	switch {
	case n >= k.want:
		k.want, k.unused = n, time.Time{}
	case k.unused.IsZero():
		k.unused = now
	case now.Sub(k.unused) >= wait:
		k.want, k.unused = n, time.Time{}
	}
	stay := k.running - k.retired
	if stay > k.want { // one that was only about to connect just now does so after all: it is looked for again
		k.retired += k.d.Path.Retire(k.want) // under the lock: one of them may be about to ask whether it is needed
	}
	// No more than the file allows with those that retire, too: another agent can keep these for a while.
	begin = max(min(k.want-stay, k.d.Connections-k.running), 0)
	k.running += begin
	return begin, wait
}

// needed reports whether a keeper whose connection has ended is to make another one; else it is none any more. Those that are
// of no use now are not counted: until they are again, or have ended, there might be no connection at all.
func (k *keepers) needed(retired bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if retired {
		k.retired--
	}
	if k.running-k.retired-k.idle <= k.want {
		return true
	}
	k.running--
	return false
}

// keep has one data connection as long as ctx lasts and it is needed.
func (k *keepers) keep(ctx context.Context) {
	again := backoff.Backoff{First: firstPause, Last: lastPause}
	for ctx.Err() == nil {
		began := time.Now()
		err := k.d.data(ctx, k.c) // what the other agent did wrong the trunk has told; a path that is gone is tried again
		if !k.needed(errors.Is(err, trunk.ErrRetired)) {
			return
		}
		if time.Since(began) > lastPause { // a worker that died has its next one, and its door was open all the time
			again.Reset()
			continue
		}
		k.pause(ctx, again.Next())
		if !k.needed(false) {
			return
		}
	}
}

func (k *keepers) pause(ctx context.Context, d time.Duration) {
	k.pauses(1)
	rest(ctx, d)
	k.pauses(-1)
}

func (k *keepers) pauses(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle += n
}
