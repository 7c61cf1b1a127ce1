package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/door"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
)

// A Config is what an agent needs to know. Its functions are called by several goroutines.
type Config struct {
	Name        string // of the agent, as lanes and certificates have it
	Incarnation uint64 // of this process: higher than those that the one before had for its trunks
	Protection  frame.Protection
	Strategy    string // one of stripe.Strategies; "": as the number of paths to each other agent asks for
	Shape       tune.Settings
	Control     string // congestion control between agents, see trunk.Config
	Connections int    // data connections of a trunk, or with how many the agents begin to look for their number
	Most        int    // up to here; no more than Connections: their number stays
	Open        int    // more there are where the other agent wants them, or with BBR where something limits each, up to here
	Memory      int    // bytes of each trunk, each way; a multiple of stripe.MaxChunk
	Silence     time.Duration
	Patience    time.Duration // see trunk.Config

	Ends Ends
	// Names are how names are served and asked for; nil: they are not.
	Names Names
	// Legs are connections that come by rules of their own, and are made by such; nil: there are none.
	Legs Legs
	// Addresses are this agent's, its door's first; Doors listen at each of them.
	Addresses []Address
	Doors     []net.Listener
	// Server is the TLS of the doors, Client that of a control connection to a named agent, after so many that came to nothing;
	// both show a certificate of this agent and refuse who has none of the network's agents. Identity is the name in the other
	// end's certificate.
	Server   *tls.Config
	Client   func(name string, failed int) *tls.Config
	Identity func(tls.ConnectionState) (name string, err error)
	// Dial connects to another agent's door, from an address of this one.
	Dial func(ctx context.Context, from netip.Addr, to netip.AddrPort) (*net.TCPConn, error)

	// Keep outlives this process, and Found is what it held when this one began; nil: nothing does.
	Keep  Keep
	Found []keeper.Found

	// Report is told what an operator should know.
	Report func(Event)
}

// An Event is something that an operator should know.
type Event struct {
	Agent string       // the other one; "": it is about this one
	Err   error        // what went wrong
	Ended *trunk.Ended // a session that has ended
	// Turned is a session with an agent that was lost, and another one that was asked to go on with it.
	Turned *Turned
	Path   *trunk.Change
}

// A Peer is another agent.
type Peer struct {
	Name   string
	Door   netip.AddrPort
	More   []netip.AddrPort // where it is reached as well: one for each of its further paths
	Former bool             // it is one of before, and knows this agent's door alone
}

// An Agent takes connections into trunks, and connects to servers.
type Agent struct {
	Config
	ctx context.Context
	end context.CancelFunc
	all sync.WaitGroup

	serving  sync.Once
	mu       sync.Mutex
	lanes    map[uint64]*Lane
	peers    map[string]*peer
	byTrunk  map[uint64]*peer // under the numbers that dialers drew
	draining bool
	refusing map[refusing]struct{}
	refused  map[door.Reason]uint64
	born     uint64             // trunks so far
	found    map[string]*legacy // of a process before, by agents; until Tell has said which of those there are
	names    chan struct{}      // there are other lanes than before, or other agents
}

// Start begins to serve. It takes nothing before Tell says what.
func Start(c Config) (*Agent, error) {
	if _, err := c.strategy(); err != nil {
		return nil, err
	}
	if len(c.Addresses) == 0 {
		return nil, errors.New("the agent has no address")
	}
	if c.Memory <= 0 || c.Memory%stripe.MaxChunk != 0 {
		return nil, fmt.Errorf("memory of %d bytes for a trunk: it must be a multiple of %d", c.Memory, stripe.MaxChunk)
	}
	a := &Agent{Config: c, lanes: map[uint64]*Lane{}, peers: map[string]*peer{}, byTrunk: map[uint64]*peer{}, refusing: map[refusing]struct{}{},
		refused: map[door.Reason]uint64{}, names: make(chan struct{}, 1)}
	if c.Keep != nil {
		found, errs := legacies(c.Found, c.Keep)
		for _, err := range errs {
			if err != nil {
				c.Report(Event{Err: err})
			}
		}
		a.found = found
	}
	a.ctx, a.end = context.WithCancel(context.Background())
	a.all.Go(func() { a.take(a.Ends.Next) })
	if c.Legs != nil {
		a.all.Go(func() { a.take(c.Legs.Next) })
	}
	if c.Names != nil {
		a.all.Go(a.serveNames)
	}
	return a, nil
}

// strategy is the one that the settings name; nil: none.
func (c *Config) strategy() (stripe.Strategy, error) {
	if c.Strategy == "" {
		return nil, nil
	}
	return stripe.StrategyNamed(c.Strategy)
}

// Close ends the agent: sessions that have not ended are reset.
func (a *Agent) Close() {
	a.end()
	a.mu.Lock()
	peers := a.peers
	a.peers = map[string]*peer{}
	a.mu.Unlock()
	for _, p := range peers {
		p.close()
	}
	a.disown()
	a.all.Wait()
}

// Leave ends the agent for one who has not come to work, right before its process ends: what the keeper holds it has for the next
// worker, as behind one that was killed. Sessions go on until then, and none is reset.
func (a *Agent) Leave() { a.end() }

// Tell says which other agents there are, and which lanes; it replaces what was told before. Sessions go on whatever
// becomes of their lane. A lane that is wrong changes nothing.
func (a *Agent) Tell(peers []Peer, lanes []Lane) error {
	next := make(map[uint64]*Lane, len(lanes))
	var near []*Lane
	for i := range lanes {
		l := &lanes[i]
		if err := l.Check(); err != nil {
			return err
		}
		if next[l.Number] != nil {
			return fmt.Errorf("two lanes have the number %d", l.Number)
		}
		next[l.Number] = l
		if l.isNear(a.Name) && !l.Named && !l.Rewrite {
			near = append(near, l)
		}
	}
	made, err := a.meet(peers)
	if err == nil {
		err = a.Ends.SetLanes(near)
	}
	if err != nil { // nothing has changed: sessions of a process before go on with the agent that they are with
		a.part(slices.DeleteFunc(made, func(p *peer) bool { return p.inherits }))
		return err
	}
	a.mu.Lock()
	a.lanes, a.refusing = next, map[refusing]struct{}{}
	a.mu.Unlock()
	a.part(a.gone(peers))
	a.disown()
	a.lookAtNames()
	a.serving.Do(a.openDoors) // before, it knows nobody, not even who has connected while there was no worker
	return nil
}

// openDoors lets other agents in.
func (a *Agent) openDoors() {
	for _, l := range a.Doors {
		a.all.Go(func() { a.serve(l) })
	}
}

// incarnation is one for a trunk that is made: an agent that was forgotten and comes again is told that nothing of before
// is left.
func (a *Agent) incarnation() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.born++
	return a.Incarnation + a.born
}

// Drain says whether new sessions are refused.
func (a *Agent) Drain(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = on
}

// Trunks are how the trunks to other agents fare, by name.
func (a *Agent) Trunks() map[string]trunk.Status {
	all := map[string]trunk.Status{}
	for name, t := range a.trunks() {
		all[name] = t.Status()
	}
	return all
}

// EachSession calls f with each session and the agent at its other end, with that trunk's lock held.
func (a *Agent) EachSession(f func(other string, s trunk.SessionStatus)) {
	for name, t := range a.trunks() {
		t.EachSession(func(s trunk.SessionStatus) { f(name, s) })
	}
}

func (a *Agent) trunks() map[string]*trunk.Trunk {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]*trunk.Trunk, len(a.peers))
	for name, p := range a.peers {
		all[name] = p.trunk
	}
	return all
}

// take decides about first packets until the agent ends.
func (a *Agent) take(next func(context.Context) (SYN, error)) {
	for {
		syn, err := next(a.ctx)
		if err != nil {
			if a.ctx.Err() == nil {
				a.Report(Event{Err: fmt.Errorf("no more connections are taken: %w", err)})
			}
			return
		}
		a.all.Go(func() { a.decide(syn) })
	}
}

// decide finds a far agent for a connection, and joins it to a session there. While it does the client waits for its
// handshake as it would wait for the server's answer; where nobody can help it gets that itself. Only where its lane says so
// it does not wait.
func (a *Agent) decide(syn SYN) {
	ctx, cancel := context.WithTimeout(a.ctx, a.Patience)
	defer cancel()
	if asked := a.atOnce(syn.Lane()); asked != nil {
		a.acceptAtOnce(ctx, syn, asked)
		return
	}
	s, err := a.open(ctx, syn)
	var refused *trunk.Refused
	switch {
	case err == nil:
		a.join(ctx, s, syn)
	case errors.As(err, &refused) && refused.Reason == frame.RefusedByHost:
		a.done("refuse", syn.Refuse())
	case errors.As(err, &refused) && refused.Reason == frame.Silence:
		a.done("drop", syn.Drop())
	default:
		a.done("let pass", syn.Pass())
	}
}

// open asks the lane's far agents one after the other. An answer of the server's own ends that: another agent would get
// the same.
func (a *Agent) open(ctx context.Context, syn SYN) (*trunk.Session, error) {
	m := openOf(syn)
	var errs []error
	for _, p := range a.candidates(m.Lane) {
		s, err := p.trunk.Open(ctx, m)
		a.heard(m.Lane, p.name, err)
		if err == nil || ofServer(err) {
			return s, err
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, errNobody)...)
}

// openOf is what a far agent is asked.
func openOf(syn SYN) frame.Open {
	return frame.Open{Lane: syn.Lane(), Client: syn.Client(), Server: syn.Server(), SYN: syn.Options()}
}

// errNobody says that no far agent can take a connection.
var errNobody = errors.New("no agent at the other end of the lane can take it")

// candidates are a lane's far agents, in its order.
func (a *Agent) candidates(lane uint64) (all []*peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lanes[lane]
	if l == nil || a.draining {
		return nil
	}
	for _, name := range l.Far {
		if p := a.peers[name]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// join finishes the client's handshake, once the server has answered.
func (a *Agent) join(ctx context.Context, s *trunk.Session, syn SYN) {
	c, own, err := syn.Accept(ctx)
	if err != nil {
		s.Abandon()
		a.Report(Event{Err: fmt.Errorf("the client of %v to %v: %w", syn.Client(), syn.Server(), err)})
		return
	}
	s.Attach(trunk.Attached{Conn: c, Host: syn.Options(), Own: own})
}

func (a *Agent) done(what string, err error) {
	if err != nil {
		a.Report(Event{Err: fmt.Errorf("%s a connection: %w", what, err)})
	}
}
