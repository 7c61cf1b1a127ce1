package hostd

import (
	"crypto/rand"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A sessions carries the host's flows through moves and failovers: it stands between the engine, which
// decides, and the edge and the kernel, which do. The loop owns it.
//
// Flows come to the engine when something happens to them and stay until they end: one that never moves
// costs nothing here.
type sessions struct {
	d       *daemon
	edge    dataPath
	engine  *session.Engine
	keys    *session.Keys // nil in an open network
	held    map[session.Key]held
	byTuple map[host.Tuple]session.Key

	kernel   *kernels
	dying    []*grave
	quiet    map[host.Tuple]*grave // the last of dying
	resumes  resumes
	nudging  []session.Key
	policies policies
	doubts   session.Doubts
	suspects map[sid.Locator]*suspect // at which the doubts are

	questions  map[question][]func(there bool) // that the controller has not answered yet
	scouted    map[sid.ServiceID]bool          // services whose flows look for another instance
	stories    stories
	journeys   []*journey
	departures []*session.Departure // the first is under way
	sums       map[summary]int      // not told yet
	servers    []*server
	capable    map[sid.ServiceID]bool
	barren     error // why this kernel adopts no connection
	seen       int   // changes of what this host serves
	strays     meter
	counters   map[string]uint64
	orphans    bool      // flows from before this daemon were not looked for yet
	compared   time.Time // with the edge; zero while that runs
}

// A held flow is the one of the edge that a flow of the engine is. A client's kernel gives the port of a connection
// that has ended to the next one; a server's tuple, which names the stable identifier, never comes back.
type held struct {
	tuple host.Tuple
	birth sid.SocketID // of a client's; 0: of a server's
}

// A dataPath is the edge as sessions use it; tests have another one.
type dataPath interface {
	Walk(f func(host.Flow) bool) error
	Flow(id sid.SocketID) (host.Flow, bool, error)
	Lookup(t host.Tuple) (host.Flow, bool, error)
	Steer(steps []host.Step) (failed []int, err error)
	Send(from, to netip.Addr, retry uint8, payload []byte) error
	PutSessions(all map[host.SessionKey][]byte) error
	DeleteSession(key host.SessionKey) error
	AllSessions(f func(key host.SessionKey, blob []byte) bool) error
	Space() sid.Space
	Adopt(a host.Adoption) error
	Nudge(flow host.Tuple, t wire.Transport, window uint16) error
	Heard(flow host.Tuple) (uint64, error)
	Unread() bool
	Quiet(l sid.Locator, yes bool) error
}

func newSessions(d *daemon) *sessions {
	s := &sessions{d: d, kernel: newKernels(d), policies: policies{}, counters: map[string]uint64{}}
	s.kernel.own.seen, s.kernel.own.slow = s.kicked, s.silent
	return s
}

// edgeOpened begins with the flows of this edge; those of one before went with it.
func (s *sessions) edgeOpened(e *host.Edge) {
	if s.barren = e.CanAdopt(); s.barren != nil {
		s.d.log.Warn("connections of other instances cannot continue here", "error", s.barren)
	}
	s.open(time.Now(), e)
}

func (s *sessions) open(now time.Time, e dataPath) {
	s.edge = e
	cfg := session.Config{Space: e.Space(), NewID: newSocketID, Journal: s.d.journal, Forbids: s.d.serving.forbids}
	rand.Read(cfg.Secret[:])
	s.engine = session.New(cfg)
	s.held, s.byTuple = map[session.Key]held{}, map[host.Tuple]session.Key{}
	s.resumes, s.stories = resumes{}, newStories()
	s.doubts, s.suspects = session.Doubts{}, map[sid.Locator]*suspect{}
	s.questions, s.scouted = map[question][]func(bool){}, map[sid.ServiceID]bool{}
	s.compared = now
	s.dying, s.quiet, s.journeys, s.departures = nil, map[host.Tuple]*grave{}, nil, nil
	s.load(now)
	s.orphans = true
	s.kernel.own.start()
}

// trusts hands the engine what it signs and checks with.
func (s *sessions) trusts(keys *session.Keys) {
	s.keys = keys
	if keys == nil {
		s.engine.SetTrust(nil)
		return
	}
	s.engine.SetTrust(keys)
	s.recheckCapable()
}

// settle does what the engine has decided: first the edge, since what is answered to a message must be
// taken, then what a restart must know, then the messages.
func (s *sessions) settle(now time.Time) {
	if s.engine == nil {
		return
	}
	s.findOrphans()
	if s.seen != s.d.serving.changes {
		s.seen = s.d.serving.changes
		s.recheckCapable()
	}
	s.engine.Expire(now)
	s.convict(now)
	s.bury(now)
	s.depart(now)
	for range 4 { // what the edge does not do may change what is decided
		changes, messages := s.engine.Drain()
		again := s.apply(now, changes)
		s.save()
		s.send(messages)
		if !again {
			break
		}
	}
	s.arrive(now)
	s.reconcile(now)
	s.kernel.own.busy.Store(s.d.load.flows > 0)
	s.kernel.moving(slices.ContainsFunc(s.journeys, (*journey).crowded))
}

// deadline is when settle has something to do by itself.
func (s *sessions) deadline() time.Time {
	if s.engine == nil {
		return time.Time{}
	}
	if len(s.departures) > 0 {
		return time.Now() // at once
	}
	at := s.engine.Deadline()
	if len(s.dying) > 0 && (at.IsZero() || s.dying[0].until.Before(at)) {
		at = s.dying[0].until
	}
	if doubts := s.doubts.Deadline(); !doubts.IsZero() && (at.IsZero() || doubts.Before(at)) {
		at = doubts
	}
	return at
}

// holds reports whether some flow's peer may know it at the locator.
func (s *sessions) holds(l sid.Locator) bool { return s.engine != nil && s.engine.Holds(l) }

// send puts messages on the wire. One that the kernel does not take is repeated like one that is lost.
func (s *sessions) send(messages []session.Outgoing) {
	var buf []byte
	for _, m := range messages {
		buf = m.Message.Append(buf[:0])
		if err := s.edge.Send(m.From, m.To, m.Retry, buf); err != nil {
			s.counters["unsent"]++
			s.d.log.Debug("message", "type", m.Message.Type(), "to", m.To, "error", err)
		}
	}
}
