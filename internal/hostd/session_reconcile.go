package hostd

import (
	"maps"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
)

// compareEvery is how often the flows of the engine are compared with those of the edge.
const compareEvery = 5 * time.Second

// reconcile lets the engine forget what has ended. It looks beside the loop.
func (s *sessions) reconcile(now time.Time) {
	if s.compared.IsZero() || now.Sub(s.compared) < compareEvery || len(s.tuples) == 0 {
		return
	}
	s.compared = time.Time{}
	edge, held := s.edge, maps.Clone(s.tuples)
	go func() {
		gone := vanished(edge, held)
		time.AfterFunc(silenceRest*time.Since(now), func() { s.d.post(func() { s.forget(edge, gone) }) })
	}()
}

// vanished lists what the edge does not have, or has under another name.
func vanished(edge dataPath, held map[session.Key]host.Tuple) (gone []session.Key) {
	for k, t := range held {
		f, there, err := edge.Lookup(t)
		if err == nil && (!there || f.Role == host.Client && f.Stable != k.Stable) {
			gone = append(gone, k)
		}
	}
	return gone
}

func (s *sessions) forget(edge dataPath, gone []session.Key) {
	s.compared = time.Now()
	if s.edge != edge {
		return
	}
	for _, k := range gone {
		if f, there, err := edge.Lookup(s.tuples[k]); err == nil && (!there || s.replaced(k, f)) { // it may have come back
			s.engine.Close(s.compared, k)
		}
	}
}
