package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/emu/fidelity"
)

// A Result is what a run of a lab gave.
type Result struct {
	Name     string          `json:"name"`
	Steps    []StepResult    `json:"steps"`
	Measures []MeasureResult `json:"measures"`
	Series   []SeriesResult  `json:"series,omitempty"`
	Title    string          `json:"title,omitempty"`
	Took     float64         `json:"took_s"` // from the moment that the lab was up to the end of all

	Certificate *fidelity.Certificate `json:"certificate,omitempty"` // of the engine; nil in a lab without one, and of half a run
}

// A StepResult is one step of the timeline, when it was due and when it began, both from the moment
// that the lab was up.
type StepResult struct {
	At     float64 `json:"at_s"`
	Began  float64 `json:"began_s"`
	Took   float64 `json:"took_s"`
	Do     string  `json:"do"`
	Label  string  `json:"label,omitempty"`
	Output string  `json:"output,omitempty"` // of exec
	Error  string  `json:"error,omitempty"`
}

// A MeasureResult is one command with its output.
type MeasureResult struct {
	Name   string  `json:"name"`
	Node   string  `json:"node"`
	Began  float64 `json:"began_s"`
	Took   float64 `json:"took_s"`
	Exit   int     `json:"exit"`
	Output string  `json:"output"`
	Error  string  `json:"error,omitempty"`
}

// Failed reports whether a step or a measurement did not succeed.
func (r *Result) Failed() bool {
	for _, s := range r.Steps {
		if s.Error != "" {
			return true
		}
	}
	for _, m := range r.Measures {
		if m.Exit != 0 || m.Error != "" {
			return true
		}
	}
	for _, s := range r.Series {
		if s.Error != "" {
			return true
		}
	}
	return false
}

// Run brings a lab up, goes through its timeline, takes its measurements and takes it down, whatever
// happens; the result holds what there was until then. The lab cannot be taken down by others
// meanwhile, and goes when this process dies and the next lab command finds it.
func Run(ctx context.Context, f *File, opt Options) (result *Result, err error) {
	l, err := up(ctx, f, opt, phaseRunning)
	if err != nil {
		return nil, err
	}
	defer func() {
		opt.logf("lab %s: down", f.Name)
		err = errors.Join(err, l.remove())
	}()
	if result, err = l.play(ctx); err != nil {
		err = l.explain(ctx, err)
	}
	return result, err
}

// A runner goes through a timeline.
type runner struct {
	lab   *Lab
	began time.Time
	busy  sync.WaitGroup // commands that go on beside the timeline

	watching sync.WaitGroup // readers of series
	series   []*SeriesResult

	mu     sync.Mutex
	result Result
}

func (r *runner) since() float64 { return time.Since(r.began).Seconds() }

// timeline carries out steps and starts measurements as they are due, then takes the measurements at
// the end and waits for all.
func (r *runner) timeline(ctx context.Context) error {
	defer r.busy.Wait() // what goes on beside ends with ctx
	steps, measures := r.lab.File.Timeline, r.lab.File.Measure
	var end []*Measure
	for _, m := range measures {
		if m.End {
			end = append(end, m)
			continue
		}
		r.busy.Go(func() { r.later(ctx, m) })
	}
	for _, s := range steps {
		if err := r.until(ctx, s.At); err != nil {
			return err
		}
		if s.Action.beside() {
			r.busy.Go(func() { r.step(ctx, s) })
			continue
		}
		r.step(ctx, s)
	}
	r.busy.Wait()
	slices.SortFunc(r.result.Steps, func(a, b StepResult) int { return cmp.Compare(a.Began, b.Began) })
	for _, m := range end {
		if ctx.Err() == nil {
			r.measure(ctx, m)
		}
	}
	return ctx.Err()
}

func (r *runner) until(ctx context.Context, at time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(r.began.Add(at))):
		return nil
	}
}

func (r *runner) later(ctx context.Context, m *Measure) {
	if r.until(ctx, m.At) == nil {
		r.measure(ctx, m)
	}
}

func (r *runner) step(ctx context.Context, s *Step) {
	res := StepResult{At: s.At.Seconds(), Began: r.since(), Do: s.Action.String(), Label: s.Label}
	r.lab.opt.logf("%7.3fs %s", res.Began, res.Do)
	out, err := r.act(ctx, s.Action)
	if res.Output = string(out); err != nil {
		res.Error = err.Error()
		r.lab.opt.logf("%7.3fs failed: %v", r.since(), err)
	}
	res.Took = r.since() - res.Began
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Steps = append(r.result.Steps, res)
}

// act is Do that keeps the output of exec.
func (r *runner) act(ctx context.Context, a Action) ([]byte, error) {
	if a.Verb == "exec" {
		return r.lab.Output(ctx, a.Node, a.Argv...)
	}
	return nil, r.lab.Do(ctx, a)
}

func (r *runner) measure(ctx context.Context, m *Measure) {
	res := MeasureResult{Name: m.Name, Node: m.Node, Began: r.since()}
	out, err := r.lab.Output(ctx, m.Node, m.Argv...)
	res.Took, res.Output = r.since()-res.Began, string(out)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		res.Exit = exit.ExitCode()
	case err != nil:
		res.Exit, res.Error = -1, err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Measures = append(r.result.Measures, res)
}

// Output runs a command in a node to its end and returns what it printed, on both its outputs.
func (l *Lab) Output(ctx context.Context, node string, argv ...string) ([]byte, error) {
	n := l.plan.Node(node)
	if n == nil {
		return nil, fmt.Errorf("lab %s has no node %q; it has %s", l.File.Name, node, l.File.names())
	}
	cmd, err := l.command(ctx, n, argv)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := l.start(n, execGroup, cmd); err != nil {
		return nil, err
	}
	err = cmd.Wait()
	return out.Bytes(), err
}
