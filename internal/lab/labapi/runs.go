package labapi

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/timeline"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// A run tells what goes on, and ends with a result.
type run struct{ events[labv1.RunEvent] }

func newRun(out *connect.ServerStream[labv1.RunEvent]) *run {
	return &run{events[labv1.RunEvent]{out: out}}
}

// logf is where a lab tells its progress.
func (r *run) logf(format string, args ...any) {
	r.send(&labv1.RunEvent{Event: &labv1.RunEvent_Progress{Progress: valid(fmt.Sprintf(format, args...))}})
}

func (r *run) end(result *timeline.Result, err error) error {
	if err != nil {
		return err
	}
	m, err := as(&labv1.Result{}, result)
	if err != nil {
		return err
	}
	r.send(&labv1.RunEvent{Event: &labv1.RunEvent_Ran{Ran: &labv1.Ran{Result: m, Failed: result.Failed()}}})
	return nil
}

// Run does what `scaffold lab run` does.
func (s calls) Run(ctx context.Context, q *labv1.LabFile, out *connect.ServerStream[labv1.RunEvent]) error {
	f, err := read(q)
	if err != nil {
		return err
	}
	s.cfg.Log("lab %s: run", f.Name)
	told := newRun(out)
	return told.end(lab.Run(ctx, f, s.options(told.logf)))
}

// Play goes through the timeline of a lab that is up.
func (s calls) Play(ctx context.Context, q *labv1.LabName, out *connect.ServerStream[labv1.RunEvent]) error {
	told := newRun(out)
	l, err := s.openLogged(q.Lab, told.logf)
	if err != nil {
		return err
	}
	s.cfg.Log("lab %s: run its timeline", l.File.Name)
	return told.end(l.Play(ctx))
}
