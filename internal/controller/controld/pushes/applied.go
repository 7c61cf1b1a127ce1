package pushes

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Patience bounds how long the answer to a change waits until the routers have applied it.
const Patience = 2 * time.Second

// A sending is rules on their way to a router.
type sending struct {
	generation uint64
	at         time.Time
}

// sendingMost bounds how many are timed: a router that lags further behind is shown by its generation.
const sendingMost = 1024

// sent notes that rules are on their way.
func (r *router) sent(generation uint64) {
	if len(r.sendings) < sendingMost {
		r.sendings = append(r.sendings, sending{generation, time.Now()})
	}
}

// arrived observes how long those took that are applied by now.
func (x *Pushes) arrived(r *router) {
	now, n := time.Now(), 0
	for n < len(r.sendings) && r.sendings[n].generation <= r.applied {
		x.Applying.Observe(now.Sub(r.sendings[n].at).Seconds())
		n++
	}
	r.sendings = append(r.sendings[:0], r.sendings[n:]...)
}

// A wait is somebody who waits for the rules up to a generation.
type wait struct {
	upTo uint64
	done chan struct{}
}

// Await returns once all connected service routers have applied the rules that hold now, or patience
// is over, and names the service routers that have not. It is called outside the loop.
func (x *Pushes) Await(ctx context.Context) (pending []string) {
	w := &wait{done: make(chan struct{})}
	if x.Loop.Ask(ctx, func() { w.upTo = x.generation; x.waits[w] = struct{}{} }) != nil {
		return nil
	}
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case <-w.done:
	case <-patience.C:
	case <-ctx.Done():
	}
	_ = x.Loop.Ask(context.WithoutCancel(ctx), func() { // fails only when all ends
		delete(x.waits, w)
		pending = x.lagging(w.upTo, func(*router) bool { return true })
	})
	return pending
}

// Wake ends the waits for routers that can be waited for: those that are away may never come back.
func (x *Pushes) Wake() {
	for w := range x.waits {
		if !x.Settling() && !x.Behind(w.upTo) {
			close(w.done)
			delete(x.waits, w)
		}
	}
}

// Behind reports whether a service router that is here has not applied the rules up to a generation.
func (x *Pushes) Behind(upTo uint64) bool {
	return len(x.lagging(upTo, func(r *router) bool { return r.session != nil })) > 0
}

// lagging names the service routers, among those that count, that have not applied the rules up to a
// generation. Nobody has before the network has settled: rules are not sent then.
func (x *Pushes) lagging(upTo uint64, counts func(*router) bool) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(x.routers)) {
		r := x.routers[name]
		done := !x.Settling() && r.session != nil && r.synced && r.applied >= min(r.told, upTo)
		if r.service && counts(r) && !done {
			list = append(list, name)
		}
	}
	return list
}
