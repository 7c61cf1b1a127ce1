package emud

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/emu/forward"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
	"scaffold.dev/scaffold/internal/lab/frr"
)

// Kinds of feeds.
const (
	FeedFPM    = "fpm"
	FeedKernel = "kernel"
)

// A feed gives a router the routes that daemons in its namespace compute.
type feed struct {
	engine *engine
	router *router
	source frr.Source
	ports  map[int]int // of the router, by number of the interface in the namespace
	fixed  map[netip.Prefix]bool

	mu     sync.Mutex
	routes map[netip.Prefix]forward.Route
	state  FeedState
}

// startFeeds listens before any daemon runs.
func (e *engine) startFeeds() error {
	for _, r := range e.order {
		if r.cfg.Feed == nil {
			continue
		}
		if err := e.startFeed(r); err != nil {
			return fmt.Errorf("router %s: %w", r.Name(), err)
		}
	}
	return nil
}

func (e *engine) startFeed(r *router) error {
	cfg := r.cfg.Feed
	ports, err := frr.Indexes(cfg.Netns, cfg.Ports)
	if err != nil {
		return err
	}
	f := &feed{engine: e, router: r, ports: ports, fixed: map[netip.Prefix]bool{}, routes: map[netip.Prefix]forward.Route{}, state: FeedState{Kind: cfg.Kind}}
	for _, s := range r.cfg.Static {
		f.fixed[s.To] = true
	}
	switch cfg.Kind {
	case FeedFPM:
		f.source, err = frr.Listen(cfg.Netns, f.tell, f.lost)
	case FeedKernel:
		f.source, err = frr.NewWatch(cfg.Netns, f.tell, f.lost)
	default:
		err = fmt.Errorf("feed %q; expected %s or %s", cfg.Kind, FeedFPM, FeedKernel)
	}
	if err != nil {
		return err
	}
	r.feed = f
	return nil
}

// tell changes the router's table; the program is the same meanwhile.
func (f *feed) tell(changes []frr.Change) {
	f.engine.routes.work.Lock()
	defer f.engine.routes.work.Unlock()
	add, remove := f.learn(changes)
	program, ok := f.router.Program().(routed)
	if !ok || len(add)+len(remove) == 0 {
		return
	}
	var failed error
	err := f.engine.net.Do(f.router.Router, func() {
		for _, p := range remove {
			program.Delete(p)
		}
		for _, r := range add {
			failed = errors.Join(failed, program.Add(r))
		}
	})
	if err = errors.Join(err, failed); err != nil {
		f.lost(err)
	}
}

// learn takes note of changes and says what they are for the router's table.
func (f *feed) learn(changes []frr.Change) (add []forward.Route, remove []netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Error = "" // whoever computes is there
	for _, c := range changes {
		if a := c.Prefix.Addr(); a.IsLinkLocalUnicast() || a.IsMulticast() || f.fixed[c.Prefix] {
			continue
		}
		_, had := f.routes[c.Prefix]
		switch r, ok := f.route(c); {
		case ok:
			f.routes[c.Prefix] = r
			add = append(add, r)
		case had:
			delete(f.routes, c.Prefix)
			remove = append(remove, c.Prefix)
		default:
			continue
		}
		f.state.Changes++
		f.state.Last = time.Now()
	}
	return add, remove
}

// maxWeight bounds how often a way stands in a route; weights of larger sums are made smaller.
const maxWeight = 64

// route is what a change is to the router, if it has a way that leads through one of its ports.
func (f *feed) route(c frr.Change) (forward.Route, bool) {
	r := forward.Route{Prefix: c.Prefix}
	switch c.Kind {
	case frr.Blackhole:
		r.Kind = forward.Blackhole
		return r, true
	case frr.Unreachable, frr.Prohibited:
		r.Kind = forward.Unreachable
		return r, true
	}
	for _, v := range scaled(c.Via) {
		port, ours := f.ports[v.Index]
		if !ours {
			continue // lo, or an interface that is not the network's
		}
		for range v.Weight {
			r.Hops = append(r.Hops, forward.NextHop{Port: port, Via: v.Gateway})
		}
	}
	return r, len(r.Hops) != 0
}

// scaled are ways with the same shares, as near as it goes, and weights of no more than maxWeight.
func scaled(via []frr.Via) []frr.Via {
	most := 1
	for _, v := range via {
		most = max(most, v.Weight)
	}
	if most <= maxWeight {
		return via
	}
	via = slices.Clone(via)
	for i := range via {
		via[i].Weight = max(1, (via[i].Weight*maxWeight+most/2)/most)
	}
	return via
}

// all are the routes of the moment, for a program that begins.
func (f *feed) all() (all []forward.Route) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.routes {
		all = append(all, r)
	}
	return all
}

// lost takes note of an error; the source goes on by itself.
func (f *feed) lost(err error) {
	logf("router %s: %v", f.router.Name(), err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Error = err.Error()
}

func (f *feed) stateNow() *emudv1.Feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &emudv1.Feed{Kind: f.state.Kind, Routes: int32(len(f.routes)), Changes: int32(f.state.Changes), LastUnixNs: unixNano(f.state.Last), Error: text(f.state.Error)}
}
