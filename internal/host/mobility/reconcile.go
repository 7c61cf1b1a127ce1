package mobility

import (
	"maps"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
)

// compareEvery is how often the flows of the engine are compared with those of the edge.
const compareEvery = 5 * time.Second

// reconcileRest is how many times as long as a comparison took nothing is done about it: it takes a fiftieth of a CPU.
const reconcileRest = 50

// reconcile lets the engine forget what has ended. It looks beside the loop.
func (s *flows) reconcile(now time.Time) {
	if s.compared.IsZero() || now.Sub(s.compared) < compareEvery || len(s.held) == 0 {
		return
	}
	s.compared = time.Time{}
	edge, all := s.edge, maps.Clone(s.held)
	go func() {
		gone := vanished(edge, all)
		time.AfterFunc(reconcileRest*time.Since(now), func() { s.post(func() { s.forget(edge, gone) }) })
	}()
}

// vanished lists what the edge does not have, or has under another name.
func vanished(edge dataPath, all map[session.Key]held) (gone []session.Key) {
	for k, h := range all {
		f, there, err := edge.Lookup(h.tuple)
		if err == nil && (!there || h.replacedBy(f)) {
			gone = append(gone, k)
		}
	}
	return gone
}

func (s *flows) forget(edge dataPath, gone []session.Key) {
	s.compared = time.Now()
	if s.edge != edge {
		return
	}
	s.findAnswered(s.compared)
	for _, k := range gone {
		if f, there, err := edge.Lookup(s.held[k].tuple); err == nil && (!there || s.replaced(k, f)) { // it may have come back
			s.engine.Close(s.compared, k)
		}
	}
}

// findAnswered looks for connecting flows that were answered while nobody read events.
func (s *flows) findAnswered(now time.Time) {
	var waiting []session.Key
	s.engine.Each(func(v session.View) bool {
		if v.State == session.Connecting {
			waiting = append(waiting, v.Key)
		}
		return true
	})
	for _, k := range waiting {
		if f, there, err := s.edge.Lookup(s.held[k].tuple); err == nil && there && f.State == host.BoundFlow {
			s.established(now, f)
		}
	}
}
