package hostd

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// steering collects what one batch of changes asks of the edge and of the kernel.
type steering struct {
	steps  []host.Step
	cause  []session.Change // of each step
	kicks  []kick.Tuple
	resets []kick.Tuple
	blocks []session.Key
	adopts []session.Change
}

// add makes steps of a change.
func (b *steering) add(v host.Verb, t host.Tuple, c session.Change) {
	b.steps = append(b.steps, host.Step{Verb: v, Flow: t, Local: host.Addr(c.Local), Peer: host.Addr(c.Peer)})
	b.cause = append(b.cause, c)
}

// apply does the changes; true when what the edge did not do gave the engine something new to decide.
func (s *sessions) apply(now time.Time, changes []session.Change) (again bool) {
	if len(changes) == 0 {
		return false
	}
	var b steering
	for _, c := range changes {
		s.collect(now, &b, c)
	}
	s.dropOutdated(now, &b)
	failed, err := s.edge.Steer(b.steps)
	if err != nil {
		s.d.log.Error("cannot steer flows", "steps", len(b.steps), "error", err)
	}
	for _, i := range failed {
		again = s.failed(now, b.cause[i]) || again
	}
	for _, c := range b.adopts {
		s.adopt(now, c)
	}
	s.kernel.reset(b.resets)
	s.kernel.kick(b.kicks)
	s.block(b.blocks)
	s.nudgeAll()
	return again
}

// collect sorts one change.
func (s *sessions) collect(now time.Time, b *steering, c session.Change) {
	if c.Kind == session.Adopt {
		s.hold(c.Key, adoptedTuple(s.edge.Space(), c))
		b.adopts = append(b.adopts, c)
		return
	}
	t, ok := s.tuples[c.Key]
	if !ok {
		return
	}
	switch c.Kind {
	case session.Accept:
		if c.Until.IsZero() {
			b.add(host.Accept, t, c)
		}
	case session.Bind:
		b.add(host.Bind, t, c)
		if t.Proto == sid.TCP {
			b.kicks = append(b.kicks, kickTuple(t))
		}
		s.bound(c)
	case session.Retry:
		b.add(host.Retry, t, c)
	case session.Drop:
		b.add(host.Drop, t, c)
	case session.Block:
		b.add(host.Block, t, c)
		b.blocks = append(b.blocks, c.Key)
		s.tell(now, c.Key, "failover", "its server is given up: "+c.Reason.String())
	case session.Unbind:
		b.add(host.Unbind, t, c)
		s.tell(now, c.Key, "failover", "resolves anew: "+c.Reason.String())
		s.summarize("flow.failover", c)
	case session.Reset:
		s.reset(now, b, t, c)
	}
}

// reset ends a flow. A server's end is silent first: an RST to a packet that is under way would end what the
// client is about to take elsewhere.
func (s *sessions) reset(now time.Time, b *steering, t host.Tuple, c session.Change) {
	if c.Key.Role == session.Server {
		b.add(host.Block, t, c)
		s.dying, s.quiet[t] = append(s.dying, grave{t, now.Add(quietFor)}), struct{}{}
	} else {
		b.add(host.Forget, t, c)
	}
	if t.Proto == sid.TCP {
		b.resets = append(b.resets, kickTuple(t))
	}
	s.tell(now, c.Key, "fail", "ended: "+c.Reason.String())
	s.summarize("flow.reset", c)
}

// quietFor is how long a flow that this host gave up swallows packets: those under way when its client heard.
const quietFor = 2 * time.Second

// A grave is a flow that is to be forgotten.
type grave struct {
	tuple host.Tuple
	until time.Time
}

// bury forgets the flows whose silence is over.
func (s *sessions) bury(now time.Time) {
	var steps []host.Step
	for len(s.dying) > 0 && !now.Before(s.dying[0].until) {
		t := s.dying[0].tuple
		delete(s.quiet, t)
		if !s.alive(t) {
			steps = append(steps, host.Step{Verb: host.Forget, Flow: t})
		}
		s.dying = s.dying[1:]
	}
	if len(steps) > 0 {
		s.edge.Steer(steps) //nolint:errcheck // what is gone is forgotten
	}
}

// alive reports whether the tuple is the engine's again: the same client came back.
func (s *sessions) alive(t host.Tuple) bool {
	k, ok := s.byTuple[t]
	if ok {
		_, ok = s.engine.View(k)
	}
	return ok
}

// failed hears of a step that the edge could not do: mostly the flow is gone, or a connecting one was
// answered meanwhile.
func (s *sessions) failed(now time.Time, c session.Change) (again bool) {
	t := s.tuples[c.Key]
	f, there, err := s.edge.Lookup(t)
	switch {
	case err != nil:
		s.d.log.Warn("look up a flow", "flow", t, "error", err)
	case !there:
		s.engine.Close(now, c.Key)
		return true
	case c.Kind == session.Retry && f.State == host.BoundFlow:
		return s.established(now, f)
	default:
		s.counters["not_steered"]++
		s.d.log.Debug("the edge did not do it", "change", c.Kind, "flow", t)
	}
	return false
}

// established tells the engine that an attempt of a connecting flow was answered.
func (s *sessions) established(now time.Time, f host.Flow) bool {
	peer := session.AddrOf(f.WirePeer.Addr())
	if !f.Stable.IsValid() || !peer.Socket.Valid() {
		return false
	}
	s.hold(session.Key{Stable: f.Stable, Role: session.Client}, f.Tuple)
	s.engine.Established(now, f.Stable, peer)
	return true
}

// fail gives up flows of this host towards their peers.
func (s *sessions) fail(now time.Time, why wire.Reason, keys []session.Key) {
	s.engine.Fail(now, why, keys...)
}
