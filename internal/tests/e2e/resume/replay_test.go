package resume

import (
	"slices"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/model"
)

// replays has SPIN do with the model of failover what the hosts' daemons decided about the client's flow, which was
// with the first server at its beginning.
func (s *service) replays(first string) {
	s.t.Helper()
	spin := nstest.Program(s.t, "spin", "spin")
	hosts := []string{"c1", first}
	for _, h := range []string{"s1", "s2", "s3"} {
		if h != first {
			hosts = append(hosts, h)
		}
	}
	var files []string
	for _, h := range hosts {
		files = append(files, shared.lab.Journal(h))
	}
	all, err := model.Journal(files...)
	if err != nil {
		s.t.Fatal(err)
	}
	var run []model.Event
	failovers := 0
	for _, d := range all {
		if d.Flow.String() != s.stable {
			continue
		}
		d.End = slices.Index(hosts, d.Host)
		run = append(run, d.Event)
		if d.End == model.Client && d.Before.State == "Confirming" && d.After.State == "Bound" {
			failovers++
		}
	}
	n, err := model.ReplayFailover(s.t.Context(), spin, run)
	if err != nil || n < len(run)/2 || failovers != 2 {
		s.t.Errorf("%d of %d decisions with %d failovers replayed, want 2 failovers: %v\nlook at: %v", n, len(run), failovers, err, files)
	}
	s.t.Logf("%d of %d decisions replayed", n, len(run))
}
