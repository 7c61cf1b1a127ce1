package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
)

// A Result is all that happened.
type Result struct {
	Seed      uint64
	Took      time.Duration
	Programs  []string // unmodified ones that ran
	Batches   []BatchResult
	Odd       []Odd
	Histories []string // the histories of odd flows
	count     tally
}

// A BatchResult is one batch and what was seen after it.
type BatchResult struct {
	Batch
	Done []Happening
	Look
}

// Run carries out a schedule on a lab that was made of the world, and tells of each batch.
func Run(ctx context.Context, r *bench.Rig, w World, o Options, tell func(format string, args ...any)) (*Result, error) {
	s := &stage{rig: r, ledger: bench.NewLedger(), world: w, servers: map[string]*bench.Program{}}
	res := &Result{Seed: o.Seed}
	if err := s.begin(ctx, o.Seed); err != nil {
		return res, err
	}
	names, err := s.send(ctx)
	if err != nil {
		return res, errors.Join(err, s.recall())
	}
	res.Programs = names
	start := time.Now()
	var done []Happening
	for i, b := range Schedule(w, o) {
		if time.Since(start) >= o.Duration {
			break // looks took longer than planned
		}
		if ctx.Err() != nil {
			return res, errors.Join(ctx.Err(), s.recall())
		}
		one := s.batch(ctx, i, b)
		done = append(done, one.Done...)
		one.Odd = append(one.Odd, s.judgeAll(done, agent.Now(), &res.count)...)
		one.Odd = append(one.Odd, s.returned(done, &res.count)...)
		s.refusals(&res.count, &one)
		res.add(one, tell)
		res.tellMore(s.histories(ctx, one.Odd), tell)
		if one.took > slow {
			tell("    slow: %s", Odd{What: fmt.Sprintf("went on after %.0f ms;%s", one.took, around(one.slow, one.Whole)), Flow: one.slow}.say()+s.bothSides(ctx, one.slow))
		}
	}
	res.Took = time.Since(start)
	odd := s.finish(ctx, done, res)
	res.Odd = append(res.Odd, odd...)
	res.tellMore(s.histories(ctx, odd), tell)
	return res, nil
}

// batch carries out events at their times and looks.
func (s *stage) batch(ctx context.Context, i int, b Batch) BatchResult {
	one := BatchResult{Batch: b}
	began := agent.Now()
	for _, e := range b.Events {
		select {
		case <-ctx.Done():
		case <-time.After(e.At - time.Duration(agent.Now()-began)):
		}
		one.Done = append(one.Done, s.happen(ctx, i, e))
	}
	one.Look = s.look(ctx, began)
	for i := range one.Done {
		h := &one.Done[i]
		h.Until = one.Served
		if h.Err != "" {
			one.Odd = append(one.Odd, Odd{At: h.Began, What: h.Do + ": " + h.Err})
		}
	}
	return one
}

// refusals count connects that failed; where nothing was broken they are odd.
func (s *stage) refusals(count *tally, one *BatchResult) {
	for _, n := range s.ledger.Refused() {
		count.refused++
		if len(one.Done) == 0 || n.At < one.Done[0].Began || n.From > one.Served+excuse {
			one.Odd = append(one.Odd, Odd{At: n.At, What: fmt.Sprintf("%s could not connect though nothing was broken: %s", n.Node, n.Err)})
		}
	}
}

func (r *Result) add(one BatchResult, tell func(string, ...any)) {
	r.Batches = append(r.Batches, one)
	r.Odd = append(r.Odd, one.Odd...)
	tell("%3d %-40s %d events, whole to healed %.0f ms at most, standstill %.0f ms at most", len(r.Batches), one.Kind,
		len(one.Done), bench.Quantile(one.Healed, 1), one.Stood)
	for _, o := range one.Odd[:min(maxTold, len(one.Odd))] {
		tell("    ODD: %s", o.say())
	}
	if more := len(one.Odd) - maxTold; more > 0 {
		tell("    and %d more", more)
	}
	if len(one.Odd) > 0 {
		for _, h := range one.Done {
			tell("         %.3f s before the look: %s (took %.0f ms)", float64(one.Whole-h.Began)/1e9, h.Do, float64(h.Ended-h.Began)/1e6)
		}
	}
}

// around are the standstills of a flow's ends at a time.
func around(f *bench.Flow, at int64) (text string) {
	for node, e := range f.Ends {
		for _, g := range e.Gaps {
			if g.From <= at && at < g.To {
				text += fmt.Sprintf(" %s got nothing from %+.3f s to %+.3f s;", node, float64(g.From-at)/1e9, float64(g.To-at)/1e9)
			}
		}
	}
	return text
}

// slow is after how many milliseconds a flow's return is worth its history.
const slow = 1000

// maxTold is how much of what is odd is told at once; the end tells all.
const maxTold = 6

func (o Odd) say() string {
	if o.Flow == nil {
		return o.What
	}
	text := fmt.Sprintf("%s flow %x", o.Flow.Proto, o.Flow.ID)
	if c := o.Flow.Client(); c != nil {
		text += fmt.Sprintf(" of %s (%s to %s)", c.Node, c.Local, c.Peer)
	}
	if s := o.Flow.Server(); s != nil {
		text += " on " + s.Node
	}
	return text + ": " + o.What
}

// finishTime bounds how long all flows may take to end in peace.
const finishTime = 30 * time.Second

// finish lets all clients end in peace and judges what is left.
func (s *stage) finish(ctx context.Context, done []Happening, res *Result) (odd []Odd) {
	errs := []error{s.recall()}
	for _, p := range s.clients {
		errs = append(errs, p.Finish(finishTime))
	}
	if err := errors.Join(errs...); err != nil {
		odd = append(odd, Odd{At: agent.Now(), What: err.Error()})
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s.ledger.Await(ctx, func() error { //nolint:errcheck // the servers' last words; what is left is judged
		if left := s.ledger.Flows(func(f *bench.Flow) bool { v, _ := judge(f, s.solo, done, 0); return v == open }); len(left) > 0 {
			return fmt.Errorf("%d flows are not over", len(left))
		}
		return nil
	})
	odd = append(odd, s.judgeAll(done, agent.Now()+2*late, &res.count)...)
	for _, f := range s.ledger.Flows(func(f *bench.Flow) bool { return f.Live() }) {
		odd = append(odd, Odd{At: agent.Now(), What: "did not end", Flow: f})
	}
	return odd
}

// tellMore keeps the histories of odd flows and tells them while they are fresh.
func (r *Result) tellMore(histories []string, tell func(string, ...any)) {
	r.Histories = append(r.Histories, histories...)
	for _, s := range histories {
		tell("%s", s)
	}
}
