package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// settle is how long an experiment looks on after an event before it believes that nothing follows.
const settle = 300 * time.Millisecond

// Churn measures how fast instances come and go: from the return of listen() to the first request
// that the new instance serves, and from kill -9 to the start of the last request that failed. One
// instance on s1 serves all the time; the one on s2 comes and goes n times.
func Churn(ctx context.Context, r *Rig, service string, n int) (Report, error) {
	var rep Report
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	steady, err := serve(r, "s1", to)
	if err != nil {
		return rep, err
	}
	defer steady.Kill() //nolint:errcheck // the lab ends with the bench
	if err := awaitServing(ctx, r, service, 1); err != nil {
		return rep, err
	}
	w, err := startWatch(r, "c1", "tcp6", to, 2)
	if err != nil {
		return rep, err
	}
	defer w.stop() //nolint:errcheck // killed
	var up, down []float64
	failed := 0
	for range n {
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		listened, killed, lost, err := comeAndGo(r, w, to)
		if err != nil {
			return rep, errors.Join(err, explain(ctx, r, service))
		}
		up, down, failed = append(up, listened), append(down, killed), failed+lost
	}
	rep.Rows = []Row{
		NewRow("listen() to first request served, p50", "ms", "<= 2", "", up),
		QuantileRow("listen() to first request served, p99", "ms", "<= 15", "", up, 0.99),
		NewRow("kill -9 to last request sent to the dead, p50", "ms", "<= 2", "", down),
		QuantileRow("kill -9 to last request sent to the dead, p99", "ms", "<= 10", "", down, 0.99),
	}
	rep.Notes = append(rep.Notes,
		fmt.Sprintf("two clients ask without pause; %d requests failed in %d kills (those in flight)", failed, n),
		"a request sent to the dead is one that failed; 0 ms where none began after the kill")
	return rep, nil
}

// comeAndGo starts an instance on s2, waits for its first answer, kills it, and returns both delays in
// milliseconds and how many requests failed.
func comeAndGo(r *Rig, w *watch, to string) (up, down float64, failed int, err error) {
	s, err := serve(r, "s2", to)
	if err != nil {
		return 0, 0, 0, err
	}
	found := w.until(5*time.Second, func(q agent.Request) bool {
		up = float64(q.End-s.Listening) / 1e6
		return q.ID == "s2" && q.End > s.Listening
	})
	if !found {
		return 0, 0, 0, fmt.Errorf("the new instance on s2 served nothing for 5 s")
	}
	w.pass(20*time.Millisecond, func(agent.Request) {}) // let it take its share
	at := agent.Now()
	if err := s.Kill(); err != nil {
		return 0, 0, 0, err
	}
	w.pass(settle, func(q agent.Request) {
		if q.Err != "" && q.End >= at {
			failed++
			down = max(down, float64(q.Start-at)/1e6)
		}
	})
	return up, down, failed, nil
}

// CutOff measures how long requests are still sent to a host that was cut off, n times. Requests that
// met it fail, or take a first packet's retransmission to get through.
func CutOff(ctx context.Context, r *Rig, service string, n int) (Report, error) {
	var rep Report
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	for _, node := range []string{"s1", "s2"} {
		s, err := serve(r, node, to)
		if err != nil {
			return rep, err
		}
		defer s.Kill() //nolint:errcheck // the lab ends with the bench
	}
	var last []float64
	for range n {
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		if err := awaitServing(ctx, r, service, 2*2); err != nil {
			return rep, err
		}
		ms, err := cutOnce(ctx, r, to)
		if err != nil {
			return rep, err
		}
		last = append(last, ms)
	}
	rep.Rows = []Row{
		NewRow("host cut off to last request sent to it, p50", "ms", "<= 150", "", last),
		QuantileRow("host cut off to last request sent to it, max", "ms", "<= 300", "", last, 1),
	}
	rep.Notes = append(rep.Notes, "the link stays up and swallows packets, so that only the probes can tell")
	return rep, nil
}

// cutOnce cuts s2 off under load and heals it.
func cutOnce(ctx context.Context, r *Rig, to string) (last float64, err error) {
	w, err := startWatch(r, "c1", "tcp6", to, 16) // those that meet the dead host stand still: enough others go on
	if err != nil {
		return 0, err
	}
	defer w.stop() //nolint:errcheck // killed
	if !w.until(5*time.Second, func(q agent.Request) bool { return q.ID == "s2" }) {
		return 0, fmt.Errorf("s2 serves nothing")
	}
	at := agent.Now()
	if err := r.Act(ctx, "cut s2"); err != nil {
		return 0, err
	}
	w.pass(2500*time.Millisecond, func(q agent.Request) {
		if q.End >= at && (q.Err != "" || q.End-q.Start > int64(settle)) {
			last = max(last, float64(q.Start-at)/1e6)
		}
	})
	return last, r.Act(ctx, "heal s2")
}

// explain says what the controller knows of the service's instances and what happened last.
func explain(ctx context.Context, r *Rig, service string) error {
	s, err := r.Service(ctx, service)
	if err != nil {
		return err
	}
	events, err := r.Events(ctx)
	text := fmt.Sprintf("the controller has %v", s.Instances)
	for _, e := range events[max(0, len(events)-12):] {
		text += fmt.Sprintf("\n  %s %s: %s", e.Kind, e.Subject, e.Text)
	}
	return errors.Join(errors.New(text), err)
}
