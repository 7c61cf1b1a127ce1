package hostd

import (
	"crypto/rand"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// A sessions carries the host's flows through moves and failovers: it stands between the engine, which
// decides, and the edge and the kernel, which do. The loop owns it.
type sessions struct {
	d      *daemon
	edge   *host.Edge
	engine *session.Engine
}

func newSessions(d *daemon) *sessions { return &sessions{d: d} }

// edgeOpened begins with the flows of this edge; those of one before went with it.
func (s *sessions) edgeOpened(e *host.Edge) {
	s.edge = e
	cfg := session.Config{Space: e.Space(), NewID: newSocketID}
	rand.Read(cfg.Secret[:])
	s.engine = session.New(cfg)
}

func (s *sessions) trusts(*session.Keys) {}

// moved renegotiates what stands at a locator that is lost or given up.
func (s *sessions) moved(from, to sid.Locator) {
	s.engine.Move(time.Now(), from, to)
}

func (s *sessions) back(sid.Locator) {}

func (s *sessions) gone([]sid.Locator) {}

func (s *sessions) order(*apiv1.DrainOrder) {}

func (s *sessions) event(host.Event) {}

func (s *sessions) holds(sid.Locator) bool { return false }

func (s *sessions) settle(now time.Time) {
	if s.engine != nil {
		s.engine.Expire(now)
	}
}

func (s *sessions) deadline() time.Time {
	if s.engine == nil {
		return time.Time{}
	}
	return s.engine.Deadline()
}
