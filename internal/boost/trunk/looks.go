package trunk

import (
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/core/tune"
)

// looks are what a session has waited for, at its end here.
type looks struct {
	idle    atomic.Bool // the reader waits for its end host to say something
	writing atomic.Bool // the writer waits for its end host to take something
	reads   tune.Judge
	writes  tune.Judge
}

// look notes for each session what it waits for now.
func (t *Trunk) look(now time.Time, rtt time.Duration) {
	interval := tune.Interval(rtt)
	for _, s := range t.sessions {
		if s.state != streaming {
			continue
		}
		if l, reads := s.reading(); reads {
			s.looks.reads.See(now, l, interval)
		}
		s.looks.writes.See(now, s.writing(), interval)
	}
}

// writing is what the session waits for before it has written more to its end host.
func (s *Session) writing() tune.Look {
	switch {
	case s.looks.writing.Load():
		return tune.Host
	case s.t.receiver.Short(s.id):
		return tune.Memory
	}
	return tune.Free
}

// reading is what the session waits for before it has read more of its end host, or, behind its end, before all has
// arrived; false: it is over.
func (s *Session) reading() (tune.Look, bool) {
	_, starved := s.t.starved[s]
	switch {
	case s.over || s.aborted:
		return tune.Unknown, false
	case s.t.sender.Backlog(s.id) > 0:
		return tune.Path, true
	case s.whole || s.sent:
		return tune.Unknown, true
	case starved && !s.t.sender.HasCredit(s.id):
		return tune.Credit, true
	case starved:
		return tune.Memory, true
	case s.looks.idle.Load():
		return tune.Host, true
	}
	return tune.Processor, true
}
