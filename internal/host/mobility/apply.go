package mobility

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// steering collects what one batch of changes asks of the edge and of the kernel.
type steering struct {
	steps  []host.Step
	cause  []cause // of each step
	blocks []session.Key
	adopts []session.Change
	late   []session.Key // of blocks that a segment was ahead of
	waited []host.Tuple  // for a way that is open again
}

// A cause is the change behind a step, and what the kernel does to its connection when the edge has done the step.
type cause struct {
	session.Change
	then ending
}

type ending uint8

const (
	leave ending = iota
	kicked
	reset
)

// add makes a step of a change.
func (b *steering) add(v host.Verb, h held, c session.Change, then ending) {
	if h.tuple.Proto != sid.TCP {
		then = leave
	}
	b.steps = append(b.steps, host.Step{Verb: v, Flow: h.tuple, Birth: h.birth, Local: host.Addr(c.Local), Peer: host.Addr(c.Peer)})
	b.cause = append(b.cause, cause{c, then})
}

// apply does the changes; true when what the edge did not do gave the engine something new to decide.
func (s *Sessions) apply(now time.Time, changes []session.Change) (again bool) {
	if len(changes) == 0 {
		return false
	}
	var b steering
	for _, c := range changes {
		s.collect(now, &b, c)
	}
	s.overtaken(now, b.late)
	failed, err := s.edge.Steer(b.steps)
	if err != nil {
		s.log.Error("cannot steer flows", "steps", len(b.steps), "error", err)
	}
	for _, i := range failed {
		again = s.failed(now, &b.cause[i]) || again
	}
	for _, c := range b.adopts {
		s.adopt(now, c)
	}
	s.kernel.Reset(b.connections(reset))
	again = s.block(b.blocks) || len(b.late) > 0 || again
	s.nudgeAll()
	s.kernel.Kick(append(b.connections(kicked), b.waited...))
	return again
}

// connections are those of the steps that the kernel has a part in.
func (b *steering) connections(then ending) (list []host.Tuple) {
	for i := range b.steps {
		if b.cause[i].then == then {
			list = append(list, b.steps[i].Flow)
		}
	}
	return list
}

// collect sorts one change.
func (s *Sessions) collect(now time.Time, b *steering, c session.Change) {
	if c.Kind == session.Adopt {
		s.hold(c.Key, held{tuple: adoptedTuple(s.edge.Space(), c)})
		b.adopts = append(b.adopts, c)
		return
	}
	h, ok := s.held[c.Key]
	if !ok {
		return
	}
	switch c.Kind {
	case session.Accept:
		if c.Until.IsZero() {
			b.add(host.Accept, h, c, leave)
		}
	case session.Bind:
		then := kicked
		if r := s.resumes[c.Key]; r != nil && r.asking {
			then = leave // nudge does it: two segments that begin the connection at once would end it there
			if _, moved := s.movedOn(c.Key); moved {
				b.late = append(b.late, c.Key)
				return
			}
		}
		b.add(host.Bind, h, c, then)
		s.bound(c)
	case session.Retry:
		b.add(host.Retry, h, c, leave)
	case session.Drop:
		b.add(host.Drop, h, c, leave)
	case session.Block:
		b.add(host.Block, h, c, leave)
		b.blocks = append(b.blocks, c.Key)
		s.tell(now, c.Key, "failover", "its server is given up: "+c.Reason.String())
	case session.Kick:
		if h.tuple.Proto == sid.TCP {
			b.waited = append(b.waited, h.tuple)
		}
	case session.Unanswered:
		s.unanswered(c)
	case session.Unbind:
		b.add(host.Unbind, h, c, leave)
		s.tell(now, c.Key, "failover", "resolves anew: "+c.Reason.String())
		s.reports.summarize("flow.failover", c)
	case session.Reset:
		s.reset(now, b, h, c)
	}
}

// reset ends a flow. A server's end is silent first: an RST to a packet that is under way would end what the
// client is about to take elsewhere.
func (s *Sessions) reset(now time.Time, b *steering, h held, c session.Change) {
	if c.Key.Role == session.Server {
		b.add(host.Block, h, c, reset)
		g := &quietFlow{tuple: h.tuple, until: now.Add(quietFor)}
		s.dying, s.quiet[h.tuple] = append(s.dying, g), g
	} else {
		b.add(host.Forget, h, c, reset)
	}
	s.tell(now, c.Key, "fail", "ended: "+inWords(c.Reason.String()))
	s.reports.summarize("flow.reset", c)
}

// quietFor is how long a flow that this host gave up swallows packets: those under way when its client heard.
const quietFor = 2 * time.Second

// A quietFlow is a flow that is to be forgotten.
type quietFlow struct {
	tuple host.Tuple
	until time.Time
}

// forgetQuiet forgets the flows whose silence is over. One that came back and went again has a new silence.
func (s *flows) forgetQuiet(now time.Time) {
	var steps []host.Step
	for len(s.dying) > 0 && !now.Before(s.dying[0].until) {
		g := s.dying[0]
		s.dying = s.dying[1:]
		if s.quiet[g.tuple] != g {
			continue
		}
		delete(s.quiet, g.tuple)
		if !s.alive(g.tuple) {
			steps = append(steps, host.Step{Verb: host.Forget, Flow: g.tuple})
		}
	}
	if len(steps) > 0 {
		s.edge.Steer(steps) //nolint:errcheck // what is gone is forgotten
	}
}

// alive reports whether the tuple is the engine's again: the same client came back.
func (s *flows) alive(t host.Tuple) bool {
	k, ok := s.byTuple[t]
	if ok {
		_, ok = s.engine.View(k)
	}
	return ok
}

// failed hears of a step that the edge could not do: mostly the flow is gone, or a connecting one was
// answered meanwhile. Where another flow has its tuple by now, the kernel has no part in it either.
func (s *Sessions) failed(now time.Time, c *cause) (again bool) {
	h := s.held[c.Key]
	f, there, err := s.edge.Lookup(h.tuple)
	if there && h.replacedBy(f) {
		s.counters["replaced"]++
		c.then = leave
	}
	switch {
	case err != nil:
		s.log.Warn("look up a flow", "flow", h.tuple, "error", err)
	case !there, h.replacedBy(f):
		s.engine.Close(now, c.Key)
		return true
	case c.Kind == session.Retry && f.State == host.BoundFlow:
		return s.established(now, f)
	default:
		s.counters["not_steered"]++
		s.log.Debug("the edge did not do it", "change", c.Kind, "flow", h.tuple)
	}
	return false
}

// established tells the engine that an attempt of a connecting flow was answered. One that the engine does not
// know of makes the flow another one to it.
func (s *flows) established(now time.Time, f host.Flow) bool {
	peer := session.AddrOf(f.WirePeer.Addr())
	if !f.Stable.IsValid() || !peer.Socket.Valid() {
		return false
	}
	if _, known := s.engine.View(session.Key{Stable: f.Stable, Role: session.Client}); !known {
		s.counters["unknown_attempt"]++
		s.engine.Close(now, s.byTuple[f.Tuple])
		_, ok := s.enter(f)
		return ok
	}
	s.holdFlow(session.Key{Stable: f.Stable, Role: session.Client}, f)
	s.engine.Established(now, f.Stable, peer)
	return true
}

// fail gives up flows of this host towards their peers.
func (s *flows) fail(now time.Time, why wire.Reason, keys []session.Key) {
	s.engine.Fail(now, why, keys...)
}
