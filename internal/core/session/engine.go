package session

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Config is what an engine cannot know by itself.
type Config struct {
	Space sid.Space
	// NewID makes an unpredictable socketID for use at the locator. It mixes the locator in: a copy of
	// this host has the same random generator in the same state.
	NewID  func(sid.Locator) sid.SocketID
	Secret [32]byte // random; what socketIDs of flows that we do not hold yet are made with
	// Offered gives the socketID that we offer to a client the form by which the data path knows its confirmation;
	// it keeps the lower half. nil: any socketID will do.
	Offered func(client Addr, id sid.SocketID) sid.SocketID
	Trust   Trust // nil: the network is open, and no flow continues at another instance; Untold until that is known
	Times   Times // the zero value means DefaultTimes
	// Forbids says who may not connect to a service of this host, at the locator; nil: nobody.
	Forbids func(sid.ServiceID, sid.Locator) bool
	// Journal hears of each decision about a flow that has a peer; nil: nobody asks.
	Journal func(Entry)
}

// Times are the protocol's durations and counts, docs/protocol.md §6.3.
type Times struct {
	Claim       time.Duration // until an RSYN is repeated first: the way back to a new place is often a moment late
	First, Most time.Duration // until other first retransmissions; what the doubling stops at
	Tries       int           // messages without an answer, then the peer is unreachable
	Grace       time.Duration // for what we were called before, and for the memory of ended flows
	Probes      int           // unanswered probes in a row, then the peer is unreachable: longer than a change of networks takes
}

// DefaultTimes are those of docs/protocol.md §6.3.
var DefaultTimes = Times{Claim: 5 * time.Millisecond, First: 20 * time.Millisecond, Most: time.Second, Tries: 30, Grace: 15 * time.Second, Probes: 15}

// An Engine is one host's ends of flows. It belongs to one goroutine.
type Engine struct {
	cfg           Config
	flows         map[Key]*flow // a connecting flow stands under each of its attempts
	bySocket      map[sid.SocketID]*flow
	ended         map[Key]endedFlow
	endedBySocket map[sid.SocketID]Key // of ended, by the last socketID
	touched       map[Key]struct{}     // since the last Touched
	capable       map[sid.ServiceID]bool
	timers        timers
	serial        uint64
	open          int       // flows that wait for an answer to a claim
	seeking       int       // flows that look for an instance
	pace          time.Time // when the next of very many may ask
	lastHeard     time.Time // a claim of some peer that was ours to take
	leaving       int       // flows that go in the same messages as the one that moves now
	out           outbox
	here          netip.Addr // where the message at hand arrived
	entry         *Entry     // of the journal, while it is made
	counters      map[string]uint64
}

// endedFlow is what is left of a flow for the grace time: whoever asks for it is told.
type endedFlow struct {
	reason wire.Reason
	local  Addr
	seen   uint32 // the last epoch of the peer: a RESUME that is not newer was used up
	until  time.Time
}

// New returns an engine without flows.
func New(cfg Config) *Engine {
	if cfg.Times == (Times{}) {
		cfg.Times = DefaultTimes
	}
	return &Engine{
		cfg:           cfg,
		flows:         map[Key]*flow{},
		bySocket:      map[sid.SocketID]*flow{},
		ended:         map[Key]endedFlow{},
		endedBySocket: map[sid.SocketID]Key{},
		touched:       map[Key]struct{}{},
		capable:       map[sid.ServiceID]bool{},
		counters:      map[string]uint64{},
	}
}

// Errors of Add.
var (
	ErrKnown    = errors.New("the flow is there already")
	ErrContinue = errors.New("no flow can continue elsewhere in an open network: an unauthenticated RSYN would bypass the handshake")
)

// Add enters a flow: one that the data path bound, or, without a peer, a client's that is connecting.
func (e *Engine) Add(x Flow) error {
	if e.flows[x.Key] != nil {
		return fmt.Errorf("add flow %v: %w", x.Stable, ErrKnown)
	}
	if x.Continue && e.cfg.Trust == nil {
		return fmt.Errorf("add flow %v: %w", x.Stable, ErrContinue)
	}
	e.serial++
	f := &flow{Flow: x, serial: e.serial, open: &e.open, seek: &e.seeking, confirmed: x.Local.Locator, send: x.Local, state: Bound}
	if x.Peer == (Addr{}) {
		f.state = Connecting
	}
	e.forgetEnded(x.Key)
	e.flows[x.Key], e.bySocket[x.Local.Socket] = f, f
	e.touch(f)
	return nil
}

// SetCapable says whether a program of this host can continue the service's flows from other instances.
func (e *Engine) SetCapable(id sid.ServiceID, capable bool) {
	e.capable[id] = capable && e.cfg.Trust != nil
}

// Close forgets a flow that has ended at both of its sockets, or whose policy is nobody's concern any more.
func (e *Engine) Close(now time.Time, k Key) {
	if f := e.flows[k]; f != nil {
		e.end(now, f, wire.NoSocket)
	}
}

// end forgets the flow and remembers why.
func (e *Engine) end(now time.Time, f *flow, why wire.Reason) {
	f.become(Closed)
	f.timer = time.Time{}
	for _, a := range append(f.old, retired{Addr: f.Local}) {
		delete(e.bySocket, a.Socket)
		delete(e.flows, Key{a.IP(), f.Role}) // attempts of a connecting flow
	}
	delete(e.flows, f.Key)
	t := endedFlow{why, f.Local, f.seen, now.Add(e.remember(f))}
	e.ended[f.Key], e.endedBySocket[t.local.Socket] = t, f.Key
	e.touch(f)
	e.timers.add(t.until, f)
}

// remember is for how long: of a flow that came here by RESUME, as long as that could be said again.
func (e *Engine) remember(f *flow) time.Duration {
	if f.Role == Server && f.transport != (wire.Transport{}) {
		return max(e.cfg.Times.Grace, 2*cookieSlot*time.Second)
	}
	return e.cfg.Times.Grace
}

// forgetEnded forgets that the flow ended.
func (e *Engine) forgetEnded(k Key) {
	if t, ok := e.ended[k]; ok {
		delete(e.ended, k)
		delete(e.endedBySocket, t.local.Socket)
	}
}

// SetTrust makes the engine sign and check from now on; nil makes the network an open one.
func (e *Engine) SetTrust(t Trust) { e.cfg.Trust = t }

// Handle takes one message that arrived from one address for another.
func (e *Engine) Handle(now time.Time, from, to netip.Addr, m wire.Message) {
	if p, ok := e.Prove(now, m); ok {
		e.HandleProved(now, from, to, m, p)
	}
}

// HandleProved is Handle for a message that Prove has looked at: who reads something for it looks at signatures first.
func (e *Engine) HandleProved(now time.Time, from, to netip.Addr, m wire.Message, p Proof) {
	e.here = to
	switch m := m.(type) {
	case wire.Renegotiate:
		e.renegotiate(now, p.key, m)
	case wire.Resume:
		e.resume(now, p.key, to, m)
	case wire.FlowFail:
		e.flowFail(now, p.key, m)
	case wire.Fail:
		e.hint(now, m)
	case wire.Probe:
		e.probe(now, from, to, m)
	case wire.ProbeAck:
		e.probeAck(now, from, to, m)
	default:
		e.count("unknown_message")
	}
}

// Counters are how often messages were refused or ignored, by reason.
func (e *Engine) Counters() map[string]uint64 { return e.counters }

func (e *Engine) count(what string) { e.counters[what]++ }
