package mobility

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// adopt makes a connection of a flow that comes from another instance. Where this host served it before, its
// old socket goes first.
func (s *failover) adopt(now time.Time, c session.Change) {
	t := s.held[c.Key].tuple
	if c.Proto != sid.TCP {
		return // the flow's next datagram makes it
	}
	a := host.Adoption{Flow: t, Local: host.Addr(c.Local), Peer: host.Addr(c.Peer), Transport: c.Transport}
	old, sure := s.kernel.Look(t)
	if s.quiet[t] != nil && !sure || old != nil { // a dying process's connection may outlive the RST that it was given
		s.kernel.ResetThen(t, func() { s.enterAdopted(c.Key, a) })
		return
	}
	s.enterAdopted(c.Key, a)
}

func (s *failover) enterAdopted(k session.Key, a host.Adoption) {
	now := time.Now()
	if err := s.edge.Adopt(a); err != nil {
		s.log.Warn("cannot go on with a connection of another instance", "flow", k.Stable, "error", err)
		s.engine.Fail(now, wire.Refused, k)
		return
	}
	if f, ok, err := s.edge.Lookup(a.Flow); err == nil && ok {
		s.history.Begin(k, f)
	}
	s.tell(now, k, "failover", "it began at another instance and goes on here")
}

// How a client makes its new instance hear of it: until something comes back.
const (
	nudgeFirst = 5 * time.Millisecond
	nudgeMost  = 10
)

// bound hears that a flow has a peer. One that found another instance shows its connection to the kernel there.
func (s *failover) bound(c session.Change) {
	if r := s.resumes[c.Key]; r != nil && r.asking {
		r.asking = false
		s.nudging = append(s.nudging, c.Key) // once the edge sends there
	}
}

// nudgeAll begins with those that bound has found.
func (s *failover) nudgeAll() {
	for _, k := range s.nudging {
		s.nudge(k, s.resumes[k], nudgeFirst, 0)
	}
	s.nudging = nil
}

func (s *failover) nudge(k session.Key, r *resume, wait time.Duration, n int) {
	h, ok := s.held[k]
	t := h.tuple
	if !ok || s.resumes[k] != r {
		return
	}
	if heard, err := s.edge.Heard(t); n > 0 && err == nil && heard != 0 {
		delete(s.resumes, k)
		s.kernel.Kick([]host.Tuple{t})
		return
	}
	if n == nudgeMost {
		s.engine.Suspect(time.Now(), k)
		return
	}
	if err := s.edge.Nudge(t, r.transport, r.window); err != nil {
		s.log.Warn("cannot show a connection to its new instance", "flow", k.Stable, "error", err)
	}
	time.AfterFunc(wait, func() { s.post(func() { s.nudge(k, r, 2*wait, n+1) }) })
}
