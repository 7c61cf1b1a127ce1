package mobility

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/wire"
)

// A segment of the old instance that passed the edge before the flow was blocked reaches the socket after the connection
// was read, if the processor that carries it is kept from going on meanwhile: a virtual one may be, for milliseconds.
// What it acknowledges the client has freed, and the new instance would wait for it for ever.
//
// That was never seen here, and no test can bring it about: between tc and the socket nothing queues, guests included
// (bpf_redirect_peer), and a look at a socket whose lock is taken, or with a backlog, is no look (kick.Look;
// TestABusySocketIsReadByThePass). To wait for all processors (membarrier) takes longer than a failover. So the
// connection is read again when an instance offers to go on, a round trip later, and once more before anything is sent
// to one that has the flow.

// reread brings the state of connections up to date for which the message is an instance's offer: what is confirmed is
// what the instance goes on from.
func (s *failover) reread(now time.Time, m wire.Message) {
	offer, ok := m.(wire.Renegotiate)
	if !ok || offer.Kind != wire.TypeRSYNACK || len(s.resumes) == 0 {
		return
	}
	for i := range offer.Claims {
		k, _ := s.engine.Owner(offer.Claims[i].Quote)
		v, there := s.engine.View(k)
		if !there || v.State != session.Asking {
			continue
		}
		c, moved := s.movedOn(k)
		if !moved {
			continue
		}
		s.counters["late_segment"]++
		t, err := c.Transport()
		if err != nil {
			s.engine.Abandon(now, k, wire.Unreachable)
			continue
		}
		r := s.resumes[k]
		r.transport, r.window = t, c.Window()
		s.engine.Reread(k, t)
	}
}

// movedOn reports whether the connection of a flow that looks for an instance stands elsewhere than it was read, as far
// as can be told at once.
func (s *failover) movedOn(k session.Key) (*kick.Socket, bool) {
	r := s.resumes[k]
	if r == nil || !r.early || !r.asking {
		return nil, false
	}
	c, sure := s.kernel.Look(s.held[k].tuple)
	return c, sure && c != nil && (c.SndUna != r.transport.SndUna || c.RcvNxt != r.transport.RcvNxt)
}

// overtaken gives up flows that an instance has made from what is not true any more: the program gets an error instead
// of waiting for ever.
func (s *failover) overtaken(now time.Time, keys []session.Key) {
	for _, k := range keys {
		s.counters["late_segment"]++
		delete(s.resumes, k)
		s.tell(now, k, "failover", "a segment of its last instance came late: it cannot go on")
		s.engine.Fail(now, wire.Elsewhere, k)
	}
}
