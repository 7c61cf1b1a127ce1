package trunk

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
)

// A Config is what a trunk needs to know. Its functions are called by several goroutines, none of which holds a lock.
type Config struct {
	Dials bool // this agent began the trunk
	// Paths are the ways to the other agent, see Use.
	Paths []Way
	// Incarnation is that of this end's HELLO. Sessions have numbers above it: the other agent remembers those of the one
	// before, and would take the same ones for these.
	Incarnation uint64
	Protection  frame.Protection
	Strategy    stripe.Strategy // nil: as the number of paths asks for
	// Shape is how each path is shared with others' traffic. Whether the kernel has BBR the trunk finds out. Where First is 0
	// all connections that there are carry.
	Shape tune.Settings
	// Control is the congestion control of data connections, as the kernel names it; "": BBR where it can be had.
	Control string
	Send    *memory.Mapping // for what is to be sent; a multiple of stripe.MaxChunk
	Receive *memory.Mapping // for what is received
	// Connect connects to the server of an OPEN as the client. A *Refused is passed on as it is, every other error as
	// silence.
	Connect func(context.Context, frame.Open) (Attached, error)
	// Restore goes on with the connection of a TAKEOVER, and says what its end host has received. A *Refused is passed on as it
	// is. nil: nothing is taken over.
	Restore func(context.Context, frame.Takeover) (Attached, uint64, error)
	// Finish is called before a FIN leaves on the connection to an end host: the stream to it is complete.
	Finish func(*net.TCPConn)
	// Patience is how long sessions wait for a trunk without connections, and how long an end host may take to connect.
	Patience time.Duration
	// Keep holds what a worker after this one needs; nil: nothing does. Found is what it held of one before this: sessions
	// of this trunk that go on, whose bytes are in Send; Peer is the incarnation of the other agent's worker that it knew.
	Keep  Keep
	Found []Found
	Peer  uint64
	// Ended is called when a session has ended.
	Ended func(Ended)
	// Broken is called when a connection has ended by a fault of the other agent.
	Broken func(error)
	// Changed is called when a path is there, or was lost; nil: nobody is told.
	Changed func(Change)
}

// Attached is a connection to an end host, and what its two ends said of themselves in their handshake.
type Attached struct {
	Conn      *net.TCPConn
	Host, Own frame.Options
}

// An Ended session is told of by numbers.
type Ended struct {
	Session        uint64
	Client, Server string
	Cause          frame.Cause    // 0: both streams are whole
	Sent, Received uint64         // bytes of the end host at this agent, and to it
	End            netip.AddrPort // this agent's end of the connection to the end host; invalid: there never was one
}

// ErrClosed says that the trunk was closed.
var ErrClosed = errors.New("the trunk to the other agent is closed")

// A Trunk is one end of all connections between two agents. Its methods may be called by any goroutine.
type Trunk struct {
	Config
	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex
	sender   *stripe.Sender
	receiver *stripe.Receiver
	slots    slots
	paths    map[Pair]*Path
	conns    map[stripe.Conn]*connection
	sessions map[uint64]*Session
	last     uint64  // session that was opened here
	opened   numbers // of sessions that the other agent opened, halved
	refused  refusals
	unsaid   unsaid
	unacked  map[*Session]struct{} // whose end host has not acknowledged all
	starved  map[*Session]struct{} // which wait for room
	resumed  map[uint64]struct{}   // what the peer's new worker has named; nil: it is not telling
	resuming time.Time             // since when it is telling
	peer     uint64                // incarnation of its worker
	closed   bool
	alarm    alarm
	version  uint32 // of the protocol, with this other agent
	moves    Moves
	asking   int       // end hosts that are asked for the other agent
	lonely   time.Time // since when there is no connection; zero: there is one, or no session needs it
}

// New makes a trunk without connections.
func New(c Config) *Trunk {
	t := &Trunk{
		Config: c, paths: map[Pair]*Path{},
		receiver: stripe.NewReceiver(uint32(len(c.Receive.Bytes())/stripe.Block), firstRTT),
		conns:    map[stripe.Conn]*connection{}, sessions: map[uint64]*Session{},
		unacked: map[*Session]struct{}{}, starved: map[*Session]struct{}{}, peer: c.Peer,
	}
	strategy := c.Strategy
	if strategy == nil {
		strategy = strategyFor(len(c.Paths))
	}
	t.sender = stripe.NewSender(uint64(len(c.Send.Bytes())), strategy)
	if t.last = c.Incarnation &^ 1; !c.Dials {
		t.last++ // odd: called
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.alarm.ring = time.AfterFunc(time.Hour, t.expire)
	t.alarm.ring.Stop()
	t.restore()
	t.Use(c.Paths)
	return t
}

// firstRTT is taken for the round trip until the kernel has measured it: RFC 6298's first guess would grow windows that
// nobody needs.
const firstRTT = 100 * time.Millisecond

// Close ends the trunk. Sessions that have not ended are reset at this end; the other agent resets its own once it has
// waited for this one.
func (t *Trunk) Close() {
	t.mu.Lock()
	t.closed = true
	for _, s := range t.sessions {
		s.giveUp(frame.Ordered)
	}
	for _, c := range t.conns {
		c.conn.Close()
	}
	t.mu.Unlock()
	t.stop()
	t.alarm.ring.Stop()
	t.all.Wait()
}

// A Status is how a trunk fares.
type Status struct {
	Up                    bool // there is a connection
	Connections, Sessions int
	RTT                   time.Duration // the shortest of the connections that there are; 0: not measured
	Counts                stripe.Counts // of what was sent
	Path                  tune.Verdict  // what binds what is sent of the path that carries most
	Moves                 Moves         // of sessions to other agents
	Paths                 []PathStatus
}

// Status asks the kernel, where a connection has not been measured lately.
func (t *Trunk) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.measure(now)
	reached := t.reached()
	s := Status{Up: reached > 0, Connections: reached, Sessions: len(t.sessions), Counts: t.sender.Counts, Moves: t.moves}
	for i, p := range t.ordered() {
		one := p.status(now)
		if one.RTT > 0 && (s.RTT == 0 || one.RTT < s.RTT) {
			s.RTT = one.RTT
		}
		if i == 0 || one.Path.Rate > s.Path.Rate {
			s.Path = one.Path
		}
		s.Paths = append(s.Paths, one)
	}
	return s
}

// A SessionStatus is how a session fares at this end.
type SessionStatus struct {
	Open           frame.Open
	Mine           bool   // its client is on this side
	Sent, Received uint64 // bytes of the end host here, and to it
	Since          time.Time
	Reads, Writes  tune.Look      // what it waits for, to read from the end host here and to write to it
	End            netip.AddrPort // this agent's end of the connection to the end host; invalid: there is none yet
}

// EachSession calls f with each session, under the trunk's lock.
func (t *Trunk) EachSession(f func(SessionStatus)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		f(SessionStatus{s.open, s.isNear(), s.read, s.written, s.at, s.looks.reads.Found(), s.looks.writes.Found(), s.own()})
	}
}

// own is this agent's end of the connection to the end host.
func (s *Session) own() netip.AddrPort {
	if s.end.Conn == nil {
		return netip.AddrPort{}
	}
	at, _ := s.end.Conn.LocalAddr().(*net.TCPAddr)
	end := at.AddrPort() // of none an invalid one
	return netip.AddrPortFrom(end.Addr().Unmap(), end.Port())
}

// Sessions is how many there are.
func (t *Trunk) Sessions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions)
}

// Counts are what the trunk has sent.
func (t *Trunk) Counts() stripe.Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sender.Counts
}

// changed is called under the lock after whatever may give work to goroutines that wait: engines do not say to whom.
func (t *Trunk) changed() {
	if t.closed { // connections end after it, and its memory may have been given back by then
		return
	}
	for _, slot := range t.sender.Freed() {
		t.slots.free(slot)
	}
	for _, c := range t.conns {
		wake(c.work)
	}
	for s := range t.starved {
		if t.sender.Room(s.id) > 0 || s.over {
			delete(t.starved, s)
			wake(s.room)
		}
	}
	t.arm()
}

// wake has whoever waits on the channel look, now or as soon as it waits.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Connections is how many data connections there are.
func (t *Trunk) Connections() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached()
}
