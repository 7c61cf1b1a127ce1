package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// Up brings a lab up and leaves it up. If anything fails, or ctx ends first, nothing is left of it.
func Up(ctx context.Context, f *file.File, opt Options) (*Lab, error) {
	l, err := up(ctx, f, opt, state.Up)
	if err != nil {
		return nil, err
	}
	l.release()
	l.release = nil
	return l, nil
}

// up returns with the lab's lock held.
func up(ctx context.Context, f *file.File, opt Options, phase string) (*Lab, error) {
	l, err := newLab(f, opt)
	if err != nil {
		return nil, err
	}
	if err := l.switches.Check(); err != nil {
		return nil, err
	}
	if err := l.routing.Check(); err != nil {
		return nil, err
	}
	if err := l.checkMachine(); err != nil {
		return nil, err
	}
	if _, err := Sweep(ctx, opt); err != nil {
		return nil, err
	}
	if l.release, err = l.dir.Acquire(); err != nil {
		return nil, err
	}
	if err := l.claim(); err != nil {
		l.release()
		return nil, err
	}
	err = l.raise(ctx)
	if err == nil {
		err = l.phase(phase)
	}
	if err != nil {
		return nil, errors.Join(l.explain(ctx, err), l.remove())
	}
	return l, nil
}

// ErrUp is returned for a second lab of the same name.
var ErrUp = errors.New("already up")

// claim refuses a lab that is up and writes down what is about to be made.
func (l *Lab) claim() error {
	s, err := l.dir.Read()
	if err != nil {
		return err
	}
	if s != nil {
		return fmt.Errorf("lab %s: %w (from %s): take it down first: scaffold lab down %s", s.Name, ErrUp, s.Path, s.Name)
	}
	return l.phase(state.Starting)
}

func (l *Lab) phase(phase string) error {
	nodes := []string{file.ManagementNode}
	for _, n := range l.plan.Spaces() {
		nodes = append(nodes, n.Name)
	}
	return l.dir.Write(&state.State{
		Name: l.File.Name, Phase: phase, Owner: os.Getpid(), Path: l.File.Path, Source: string(l.File.Source), Attached: l.File.Attached, Plane: l.File.Network.Plane,
		Binary: l.opt.Binary, Nodes: nodes, Cgroup: string(l.procs.Root),
	})
}

// raise makes everything, in order. It looks at ctx between the steps that take time.
func (l *Lab) raise(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"directories", func(context.Context) error { return l.makePlaces() }},
		{"namespaces and links", func(ctx context.Context) error { return wires.Build(ctx, l.plan, l.engine.Start) }},
		{"daemons", l.startDaemons},
		{"network", l.control.Settle},
		{"agents", l.startAgents},
		{"routes", l.routing.Converge},
		{"programs", l.startPrograms},
	}
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.opt.logf("lab %s: %s", l.File.Name, s.what)
		if err := s.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makePlaces makes directories, cgroups and the lab's own bpffs.
func (l *Lab) makePlaces() error {
	if err := l.procs.Prepare(); err != nil {
		return err
	}
	return l.dir.Mount()
}

// explain replaces the end of a context by what ended it.
func (l *Lab) explain(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return &interrupted{l.File.Name}
	}
	return fmt.Errorf("lab %s: %w", l.File.Name, err)
}

// interrupted is context.Canceled in words for people.
type interrupted struct{ lab string }

func (e *interrupted) Error() string {
	return "lab " + e.lab + ": interrupted; everything is removed again"
}
func (e *interrupted) Unwrap() error { return context.Canceled }

// List names the labs that are up.
func List(opt Options) ([]string, error) {
	labs, err := state.Names(opt.dir())
	slices.Sort(labs)
	return labs, err
}
