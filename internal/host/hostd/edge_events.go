package hostd

import (
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
)

// readEdge brings the edge's events to the loop until the edge is closed.
func (d *daemon) readEdge(edge *host.Edge) {
	beat := time.NewTicker(host.BeatEvery)
	defer beat.Stop()
	for {
		e, err := edge.ReadEvent()
		if err != nil {
			return
		}
		f := func() { d.sessions.Event(e) }
		if e.Kind == host.Refused {
			f = func() { d.refusals.event(e) }
		}
		d.postOrBeat(f, beat.C, edge.Beat)
	}
}
