package peering

import (
	"cmp"
	"context"
	"sync"
	"time"

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
		begin, retire, in := k.next(time.Now())
		for range begin {
			all.Go(func() { k.keep(ctx) })
		}
		if retire > 0 {
			k.d.Trunk.Retire(retire)
		}
		later.Reset(in)
		select {
		case <-k.again:
		case <-k.d.Trunk.Rethinks():
		case <-later.C:
		case <-ctx.Done():
			return
		}
	}
}

// next is how many keepers begin, or, above 0, how many connections are not to retire; and when to look again. More there are
// at once, fewer when that many have been unused for a while.
func (k *keepers) next(now time.Time) (begin, retire int, in time.Duration) {
	own := k.d.Trunk.Wants()
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
	begin = max(k.want-k.running, 0)
	k.running += begin
	if k.running > k.want { // one that was only about to connect just now does so after all: it is looked for again
		retire = k.want
	}
	return begin, retire, wait
}

// needed reports whether a keeper whose connection has ended is to make another one; else it is none any more.
func (k *keepers) needed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running <= k.want {
		return true
	}
	k.running--
	return false
}

// keep has one data connection as long as ctx lasts and it is needed.
func (k *keepers) keep(ctx context.Context) {
	again := backoff.Backoff{First: firstPause, Last: lastPause}
	for ctx.Err() == nil && k.needed() {
		began := time.Now()
		k.d.data(ctx, k.c)                 //nolint:errcheck // what the other agent did wrong the trunk has told; a path that is gone is tried again
		if time.Since(began) > lastPause { // a worker that died has its next one, and its door was open all the time
			again.Reset()
			continue
		}
		if ctx.Err() == nil && !k.needed() {
			return
		}
		rest(ctx, again.Next())
	}
}
