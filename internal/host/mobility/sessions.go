package mobility

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/tcp"
	"scaffold.dev/scaffold/sid"
)

// Sessions carry the host's flows through moves and failovers: they stand between the engine, which
// decides, and the edge and the kernel, which do. The loop owns them.
//
// Flows come to the engine when something happens to them and stay until they end: one that never moves
// costs nothing here. Each part has the flows, and of the other parts those that it names.
type Sessions struct {
	*flows
	*moves
	*failover
	*suspicion
	*inbound
	*servers
	questions *questions
	reports   *reports

	crowd   func() uint32
	journal func(session.Entry)
	serving Serving
}

// New waits for an edge. It is for the loop alone; its goroutines end with ctx.
func New(ctx context.Context, cfg Config) *Sessions {
	f := &flows{log: cfg.Log, post: cfg.Post, policies: policies{}, counters: map[string]uint64{}}
	q := &questions{flows: f, ctx: ctx, controller: cfg.Controller, curious: map[sid.ServiceID][]func(){}}
	r := &reports{log: cfg.Log, post: cfg.Post, controller: cfg.Controller, meter: cfg.Meter}
	s := &Sessions{
		flows:     f,
		moves:     &moves{flows: f, reports: r, places: cfg.Places, crowd: cfg.Flows},
		failover:  &failover{flows: f, questions: q},
		suspicion: &suspicion{flows: f, questions: q, places: cfg.Places, waiting: cfg.Waiting},
		servers:   &servers{flows: f, serving: cfg.Serving},
		questions: q, reports: r, crowd: cfg.Flows, journal: cfg.Journal, serving: cfg.Serving,
	}
	s.inbound = &inbound{flows: f, failover: s.failover, suspicion: s.suspicion, questions: q, reports: r, settle: s.Settle, gates: newGates(), reached: reached{}}
	f.kernel = tcp.New(ctx, cfg.Log, cfg.Post, &watch{flows: f, moves: s.moves, places: cfg.Places, meter: cfg.Meter})
	return s
}

// EdgeOpened begins with the flows of this edge, also of one that was adopted; those of one before went with it. Nothing
// else is asked before it is.
func (s *Sessions) EdgeOpened(e *host.Edge) {
	if s.barren = e.CanAdopt(); s.barren != nil {
		s.log.Warn("connections of other instances cannot continue here", "error", s.barren)
	}
	s.open(time.Now(), e)
	s.kernel.Start()
}

// BindTo says the device of the VRF in which the host's programs are, "" where they are in none.
func (s *Sessions) BindTo(device string) { s.kernel.BindTo(device) }

// open begins with the flows of an edge.
func (s *Sessions) open(now time.Time, e dataPath) {
	s.edge = e
	cfg := session.Config{Space: e.Space(), NewID: newSocketID, Journal: s.journal, Forbids: s.serving.Forbids, Trust: session.Untold{}}
	cfg.Offered = func(client session.Addr, id sid.SocketID) sid.SocketID { return e.Offered(host.Addr(client), id) }
	rand.Read(cfg.Secret[:])
	s.inbound.renew()
	s.engine = session.New(cfg)
	s.flows.renew(now)
	s.failover.renew()
	s.suspicion.renew()
	s.questions.renew()
	s.moves.renew()
	s.load(now)
}

// Trusts hands the engine what it signs and checks with; nil: the network is open. Before, it believes nobody: the
// edge of a daemon before this one hands over messages as soon as it is opened, and a link may lead anywhere until
// somebody greets on it.
func (s *Sessions) Trusts(keys *session.Keys) {
	if keys != nil && s.keys != nil {
		keys.Inherit(s.keys)
	}
	s.keys = keys
	if keys == nil {
		s.engine.SetTrust(nil)
		return
	}
	s.engine.SetTrust(keys)
	s.recheckCapable()
}

// Distrusts has the engine believe nobody, as before trusts.
func (s *Sessions) Distrusts() {
	s.keys = nil
	s.engine.SetTrust(session.Untold{})
}

// Settle does what the engine has decided, after each batch of what was posted: first the edge, since what is answered to a message must be
// taken, then what a restart must know, then the messages.
func (s *Sessions) Settle(now time.Time) {
	if s.engine == nil {
		return
	}
	s.findOrphans()
	s.findUntold(now)
	if s.seen != s.serving.Changes() {
		s.seen = s.serving.Changes()
		s.recheckCapable()
	}
	s.engine.Expire(now)
	s.giveUpSilent(now)
	s.forgetQuiet(now)
	s.depart(now)
	var messages []session.Outgoing
	for range 4 { // what the edge does not do, or the kernel says, may change what is decided
		changes, sent := s.engine.Drain()
		messages = append(messages, sent...)
		if !s.apply(now, changes) {
			break
		}
	}
	s.save() // behind the last change of a flow: it forgets which one of the edge a flow was that has ended
	s.send(messages)
	s.arrive(now)
	s.reconcile(now)
	s.kernel.Busy(s.crowd() > 0)
	s.kernel.Moving(slices.ContainsFunc(s.journeys, (*journey).crowded))
}

// Deadline is when Settle has something to do by itself; zero: never.
func (s *Sessions) Deadline() time.Time {
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

// Holds reports whether some flow's peer may know it at the locator.
func (s *flows) Holds(l sid.Locator) bool { return s.engine != nil && s.engine.Holds(l) }

// send puts messages on the wire. One that the kernel does not take is repeated like one that is lost.
func (s *flows) send(messages []session.Outgoing) {
	var buf []byte
	for _, m := range messages {
		buf = m.Message.Append(buf[:0])
		if err := s.edge.Send(m.From, m.To, m.Retry, buf); err != nil {
			s.counters["unsent"]++
			s.log.Debug("message", "type", m.Message.Type(), "to", m.To, "error", err)
		}
	}
}

// Host begins with the kernel's TCP of a guest that is up; k was opened in its namespace.
func (s *Sessions) Host(guest uint16, k *kick.Kicker) { s.kernel.Add(guest, k) }

// Unhost ends with it.
func (s *Sessions) Unhost(guest uint16) { s.kernel.Remove(guest) }
