package emu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Options of a network.
type Options struct {
	// Virtual time stands still unless [Net.Run] moves it: for generated traffic, faster than real time, the same in
	// each run. Without it the clock is the machine's, and [Net.Start] moves packets.
	Virtual bool
	Shards  int // threads; 0: one less than there are CPUs, at least one; in virtual time one
	// Split lets routers that links join be in different shards, where that promises to be faster. Without it a shard
	// has whole networks.
	Split  bool
	Memory Memory
	Log    func(format string, args ...any) // what people should know, such as a router that stopped; nil for nothing
}

// A Net is an emulated network: routers and edges, joined by links. It is built by one goroutine; once it
// runs, what changes routers goes through [Net.Do], and all other methods may be called from any goroutine.
type Net struct {
	opt      Options
	routers  []*Router
	edges    []*Edge
	links    []*Link
	shards   []*shard
	crossing []*way // that lead from one shard to another
	players  []*Player
	halting  sync.Mutex // held while routers move
	running  bool
	zero     int64 // of the network's clock, in nanoseconds of CLOCK_MONOTONIC
	tracing  bool
}

// A Node is what a link joins: a [Router] or an [Edge].
type Node interface {
	Name() string
	attach(*way) (*Port, error) // the way out of a new port
}

// New returns an empty network.
func New(opt Options) *Net {
	if opt.Shards == 0 {
		opt.Shards = max(1, runtime.NumCPU()-1)
		if opt.Virtual {
			opt.Shards = 1
		}
	}
	if opt.Log == nil {
		opt.Log = func(string, ...any) {}
	}
	return &Net{opt: opt}
}

// Router adds a router that runs a program.
func (n *Net) Router(name string, p Program) *Router {
	r := &Router{net: n, name: name, number: len(n.routers), program: p}
	r.timer = timer{router: r, rank: 1<<62 + uint64(r.number), slot: idle}
	n.routers = append(n.routers, r)
	return r
}

// Virtual reports whether time stands still unless [Net.Run] moves it.
func (n *Net) Virtual() bool { return n.opt.Virtual }

// Routers are all routers, in the order in which they were added.
func (n *Net) Routers() []*Router { return n.routers }

// Links are all links, in the order in which they were added.
func (n *Net) Links() []*Link { return n.links }

// Edges are all edges, in the order in which they were added.
func (n *Net) Edges() []*Edge { return n.edges }

// ErrRunning is returned where a network would have to change that runs already.
var ErrRunning = errors.New("the network runs already; build it before")

// Now is the time on the network's clock. Its zero is the start.
func (n *Net) Now() time.Duration {
	if len(n.shards) == 0 {
		return 0
	}
	return n.shards[0].clock()
}

// Do calls f on the thread of a router, between two batches of packets; nil means that of the first shard. It
// returns when f has.
func (n *Net) Do(r *Router, f func()) error {
	var s *shard
	switch {
	case r != nil:
		s = r.shard
	case len(n.shards) > 0:
		s = n.shards[0]
	}
	return s.ask(f)
}

// Close ends the network. Its interfaces are gone afterwards.
func (n *Net) Close() error {
	for _, s := range n.shards {
		s.end()
	}
	for _, e := range n.edges {
		e.close()
	}
	for _, s := range n.shards {
		s.free()
	}
	n.shards = nil
	return nil
}

// Find returns the router of a name.
func (n *Net) Find(name string) (*Router, error) {
	for _, r := range n.routers {
		if r.name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no router %q in the emulated network", name)
}
