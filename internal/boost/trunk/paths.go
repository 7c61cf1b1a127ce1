package trunk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
)

// A Pair is the two ends of a path: an address of this agent, and one of the other.
type Pair struct{ Own, Other netip.Addr }

func (p Pair) String() string { return p.Own.String() + " to " + p.Other.String() }

// A Way is a path as an operator wants it.
type Way struct {
	Pair
	Limit float64 // bytes a second; 0: that of Config.Shape
}

// A Path is one way between the two agents, with a control connection and data connections of its own: what becomes of one
// does not touch the others. Its methods may be called by any goroutine.
type Path struct {
	Way
	t    *Trunk
	ctx  context.Context // ends with the path
	stop context.CancelFunc
	// rethinks has something when Wants has another answer than before.
	rethinks chan struct{}

	// Under the trunk's lock.
	place    int     // among all paths
	used     numbers // of connections
	secret   seal.Secret
	up       bool   // there is a secret
	controls uint64 // how many control connections there have been: the number of the present one
	since    time.Time
	why      error // what ended the last one, or kept the next one from beginning; nil: nothing has
	shaping  shaping
	listens  listening // for the other agent's machine
	sent     uint64    // bytes of chunks, with those that went out again
	received uint64
}

// Use says which paths there are from now on. Others end, and what they carried goes on over these.
func (t *Trunk) Use(ways []Way) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for pair, p := range t.paths {
		if !slices.ContainsFunc(ways, func(w Way) bool { return w.Pair == pair }) {
			delete(t.paths, pair)
			p.up = false
			p.controls++ // its control connection may end after it
			p.stop()
			p.drop()
		}
	}
	for i, w := range ways {
		p := t.paths[w.Pair]
		if p == nil {
			p = &Path{Way: w, t: t, rethinks: make(chan struct{}, 1), since: time.Now()}
			p.ctx, p.stop = context.WithCancel(t.ctx)
			t.paths[w.Pair] = p
		}
		p.place = i
	}
	if t.Strategy == nil {
		t.sender.Use(strategyFor(len(t.paths)))
	}
	t.changed()
}

// strategyFor is what decides which connection carries what where no file says it. Connections over one path are alike. Over
// several paths the slow one is not to hold up what the fast one has brought.
func strategyFor(paths int) stripe.Strategy {
	name := "pull"
	if paths > 1 {
		name = "ecf"
	}
	s, _ := stripe.StrategyNamed(name) // it has both
	return s
}

// Path is the one between two addresses; nil: there is none.
func (t *Trunk) Path(p Pair) *Path {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paths[p]
}

// Context ends when the path does.
func (p *Path) Context() context.Context { return p.ctx }

// ordered are the paths in the order in which Use has named them.
func (t *Trunk) ordered() (list []*Path) {
	for _, p := range t.paths {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Path) int { return cmp.Compare(a.place, b.place) })
	return list
}

// ErrFormer says that a control connection is of a worker of the other agent that another one has followed.
var ErrFormer = errors.New("the control connection is of a worker that another one has followed")

// errFollowed is why a path is not up whose other agent has another worker, which has not come by this path yet.
var errFollowed = errors.New("the other agent's worker is another one")

// Up says that the path has a control connection to a worker of the other agent, the secret of the data connections that come
// now, and which version of the trunk protocol the two have agreed on. Data connections of before end. Where the worker is
// another one than before, what the former one said of credit and of ranges is void, and all connections to that one end, on
// whatever path. ErrFormer: it is the former one, and by this path or another one its next one is there.
//
// down says that this control connection has ended, and why. One that another has followed meanwhile takes nothing away: an
// agent that stood still finds both when it goes on, the next one to greet and the end of the last one, in any order.
func (p *Path) Up(secret seal.Secret, incarnation uint64, version uint32) (down func(error), err error) {
	t := p.t
	t.mu.Lock()
	if t.closed || t.paths[p.Pair] != p {
		t.mu.Unlock()
		return nil, ErrClosed
	}
	for _, o := range t.paths {
		if o.up && incarnation < t.peer {
			t.mu.Unlock()
			return nil, ErrFormer
		}
	}
	t.version = version
	lost := t.follow(p, incarnation)
	if secret != p.secret { // a connection's keys follow from both: its number counts once under each secret
		p.used = numbers{}
	}
	p.secret = secret
	p.drop()
	p.controls++
	number, was := p.controls, p.up
	p.turn(true, nil)
	t.changed()
	t.mu.Unlock()
	for _, o := range lost {
		o.tell(false, errFollowed)
	}
	if !was {
		p.tell(true, nil)
	}
	return func(why error) { p.down(number, why) }, nil
}

// follow notes which worker the other agent has, by what one path says, and returns the other paths that were up to another.
func (t *Trunk) follow(by *Path, incarnation uint64) (lost []*Path) {
	before := t.peer
	t.peer = incarnation
	if incarnation == before {
		return nil
	}
	for _, o := range t.paths {
		if o != by && o.up {
			o.controls++
			o.turn(false, errFollowed)
			lost = append(lost, o)
		}
		o.drop()
	}
	if before == 0 {
		t.met()
		return lost
	}
	t.sender.PeerRestarted()
	t.receiver.PeerRestarted()
	t.resumed, t.resuming = map[uint64]struct{}{}, time.Now() // the next worker of ours has to wait for it, too: met once it is over
	return lost
}

func (p *Path) down(number uint64, why error) {
	t := p.t
	t.mu.Lock()
	if number != p.controls {
		t.mu.Unlock()
		return
	}
	p.turn(false, why)
	p.drop()
	closed := t.closed
	t.mu.Unlock()
	if !closed {
		p.tell(false, why)
	}
}

// turn notes that the path is up, or not.
func (p *Path) turn(up bool, why error) {
	if p.up != up {
		p.since = time.Now()
	}
	p.up, p.why = up, why
}

// A Change is that a path is there, or was lost.
type Change struct {
	Pair
	Up  bool
	Why error // it was lost
}

func (c Change) String() string {
	if c.Up {
		return fmt.Sprintf("path %v is there", c.Pair)
	}
	return fmt.Sprintf("path %v is lost: %v", c.Pair, c.Why)
}

func (p *Path) tell(up bool, why error) {
	if p.t.Changed != nil {
		p.t.Changed(Change{p.Pair, up, why})
	}
}

// Failed notes why there is no control connection; again: that is known.
func (p *Path) Failed(why error) (again bool) {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	again = p.why != nil && why != nil && p.why.Error() == why.Error()
	if !p.up {
		p.why = why
	}
	return again
}

// drop ends all data connections of the path; their readers take them away. What these have read already is not taken any more.
func (p *Path) drop() {
	for _, c := range p.conns() {
		c.dropped = true
		c.conn.Close()
	}
}

// settings are how the path is shared with others' traffic.
func (p *Path) settings() tune.Settings {
	s := p.t.Shape
	if p.Limit > 0 {
		s.Limit = p.Limit
	}
	return s
}

// A PathStatus is how a path fares.
type PathStatus struct {
	Pair
	Up             bool // there is a connection
	Since          time.Time
	Why            string // what ended it, or keeps it from beginning; "": nothing
	Connections    int
	RTT            time.Duration // the shortest of its connections; 0: not measured
	Sent, Received uint64        // bytes of chunks
	Path           tune.Verdict  // what of it binds what is sent
}

// status is how the path fares, as it was measured last.
func (p *Path) status(now time.Time) PathStatus {
	s := PathStatus{Pair: p.Pair, Since: p.since, Connections: p.reached(), Sent: p.sent, Received: p.received}
	s.Up = s.Connections > 0
	if p.why != nil && !p.up {
		s.Why = p.why.Error()
	}
	s.RTT = p.shortest(now)
	if p.shaping.tuner != nil && s.Up && len(p.t.sessions) > 0 { // without any nobody has looked since the last one ended
		s.Path = p.shaping.tuner.Verdict()
	}
	return s
}

// reached is how many connections the path has with the other agent at their other end.
func (p *Path) reached() (connections int) {
	for _, c := range p.conns() {
		if c.met && !c.retires {
			connections++
		}
	}
	return connections
}

// counts adds what a frame of DATA carries over the path.
func (p *Path) counts(h frame.Header, count *uint64) {
	if h.Type == frame.TypeData {
		*count += uint64(h.Length)
	}
}
