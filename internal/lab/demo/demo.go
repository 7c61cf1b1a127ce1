package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/rig"
)

// Play shows all claims on a lab that is up and has no server running, and returns what it saw of
// each. It stops early at ctx's end or when the lab itself fails.
func Play(ctx context.Context, r *rig.Rig, out io.Writer) ([]Result, error) {
	start := time.Now()
	s := &show{Rig: r, say: func(format string, args ...any) {
		fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}}
	s.say("%d unmodified curls on c1 ask http://web.svc/ all the time; nobody serves it yet", curls)
	var err error
	if s.load, err = StartLoad(r, "c1", curls, curlRate); err != nil {
		return nil, err
	}
	defer s.load.Stop()
	stop := context.AfterFunc(ctx, s.load.Stop) // wakes every wait
	defer stop()
	var results []Result
	for _, step := range steps {
		s.say("%s. %s", step.name, step.claim)
		began := time.Now()
		r, err := step.run(ctx, s)
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		if err != nil {
			return results, fmt.Errorf("step %s, %s: %w", step.name, step.claim, err)
		}
		r.Step, r.Claim = step.name, step.claim
		r.hear(s.told(ctx, began), step.stops)
		results = append(results, r)
		s.say("   %s", r.Seen)
	}
	return results, nil
}

// told is what the controller has told of instances since then; nothing where it does not answer.
func (s *show) told(ctx context.Context, since time.Time) []*apiv1.Event {
	all, _ := s.Events(ctx)
	return ofInstances(all, since)
}

// Report prints the table and says whether all claims hold.
func Report(out io.Writer, results []Result) bool {
	writeTable(out, results)
	holds := len(results) == len(steps)
	for _, r := range results {
		holds = holds && r.Holds
	}
	return holds
}
