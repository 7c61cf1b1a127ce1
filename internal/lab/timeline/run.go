package timeline

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A Network is what things happen to.
type Network interface {
	Do(ctx context.Context, a file.Action) error                             // returns when the action is done
	Output(ctx context.Context, node string, argv ...string) ([]byte, error) // runs a command to its end
	Begin(ctx context.Context, node string, argv []string) (*Command, error) // starts one
	In(node string, f func() error) error                                    // calls f in the network namespace of a node
	Counter(node, peer string) Counter                                       // of what a node and its neighbour exchange
}

// A Command runs, and what it prints can be read. End kills it and waits for it.
type Command struct {
	Out io.Reader
	End func()
}

// A Counter is read again and again until it is closed.
type Counter interface {
	Bytes() (received, sent uint64, err error)
	Close()
}

// Play goes through the timeline of a file and takes its measurements; logf tells people what happens. With an error
// the result holds what there was until then.
func Play(ctx context.Context, f *file.File, n Network, logf func(format string, args ...any)) (*Result, error) {
	r := &runner{net: n, file: f, logf: logf, began: time.Now()}
	r.result.Name, r.result.Title = f.Name, f.Title
	watching, stop := context.WithCancel(ctx)
	defer stop()
	r.watch(watching)
	err := r.timeline(ctx)
	stop()
	r.watched()
	return &r.result, err
}

// A runner goes through a timeline.
type runner struct {
	net   Network
	file  *file.File
	logf  func(format string, args ...any)
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
	steps, measures := r.file.Timeline, r.file.Measure
	var end []*file.Measure
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
		if s.Action.Beside() {
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

func (r *runner) later(ctx context.Context, m *file.Measure) {
	if r.until(ctx, m.At) == nil {
		r.measure(ctx, m)
	}
}

func (r *runner) step(ctx context.Context, s *file.Step) {
	res := StepResult{At: s.At.Seconds(), Began: r.since(), Do: s.Action.String(), Label: s.Label}
	r.logf("%7.3fs %s", res.Began, res.Do)
	out, err := r.act(ctx, s.Action)
	if res.Output = string(out); err != nil {
		res.Error = err.Error()
		r.logf("%7.3fs failed: %v", r.since(), err)
	}
	res.Took = r.since() - res.Began
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Steps = append(r.result.Steps, res)
}

// act is Do that keeps the output of exec.
func (r *runner) act(ctx context.Context, a file.Action) ([]byte, error) {
	if a.Verb == "exec" {
		return r.net.Output(ctx, a.Node, a.Argv...)
	}
	return nil, r.net.Do(ctx, a)
}

func (r *runner) measure(ctx context.Context, m *file.Measure) {
	res := MeasureResult{Name: m.Name, Node: m.Node, Began: r.since()}
	out, err := r.net.Output(ctx, m.Node, m.Argv...)
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
