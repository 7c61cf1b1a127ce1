package controld

import (
	"context"
	"maps"
	"slices"
	"time"
)

// applyPatience bounds how long the answer to a change waits until the routers have applied it.
const applyPatience = 2 * time.Second

// A wait is somebody who waits for the rules up to a generation.
type wait struct {
	upTo uint64
	done chan struct{}
}

// await returns once all connected service routers have applied the rules that hold now, or patience
// is over, and names the service routers that have not.
func (a *adminAPI) await(ctx context.Context) (pending []string) {
	w := &wait{done: make(chan struct{})}
	if a.n.ask(ctx, func() { w.upTo = a.n.generation; a.n.waits[w] = struct{}{} }) != nil {
		return nil
	}
	patience := time.NewTimer(applyPatience)
	defer patience.Stop()
	select {
	case <-w.done:
	case <-patience.C:
	case <-ctx.Done():
	}
	_ = a.n.ask(context.WithoutCancel(ctx), func() { // fails only when all ends
		delete(a.n.waits, w)
		pending = a.n.lagging(w.upTo, func(*router) bool { return true })
	})
	return pending
}

// wake ends the waits for routers that can be waited for: those that are away may never come back.
func (n *network) wake() {
	for w := range n.waits {
		if n.grace == nil && len(n.lagging(w.upTo, func(r *router) bool { return r.session != nil })) == 0 {
			close(w.done)
			delete(n.waits, w)
		}
	}
}

// lagging names the service routers, among those that count, that have not applied the rules up to a
// generation. Nobody has during the grace: rules are not sent then.
func (n *network) lagging(upTo uint64, counts func(*router) bool) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(n.routers)) {
		r := n.routers[name]
		done := n.grace == nil && r.session != nil && r.synced && r.applied >= min(r.told, upTo)
		if r.Service && counts(r) && !done {
			list = append(list, name)
		}
	}
	return list
}
