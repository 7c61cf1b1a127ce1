package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Up brings a lab up and leaves it up. If anything fails, or ctx ends first, nothing is left of it.
func Up(ctx context.Context, f *File, opt Options) (*Lab, error) {
	l, err := up(ctx, f, opt, phaseUp)
	if err != nil {
		return nil, err
	}
	l.release()
	l.release = nil
	return l, nil
}

// up returns with the lab's lock held.
func up(ctx context.Context, f *File, opt Options, phase string) (*Lab, error) {
	l, err := newLab(f, opt)
	if err != nil {
		return nil, err
	}
	if err := l.checkSwitches(); err != nil {
		return nil, err
	}
	if err := l.checkFRR(); err != nil {
		return nil, err
	}
	if err := l.checkMachine(); err != nil {
		return nil, err
	}
	if _, err := Sweep(ctx, opt); err != nil {
		return nil, err
	}
	if l.release, err = l.place.acquire(); err != nil {
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
	s, err := l.place.read()
	if err != nil {
		return err
	}
	if s != nil {
		return fmt.Errorf("lab %s: %w (from %s): take it down first: scaffold lab down %s", s.Name, ErrUp, s.Path, s.Name)
	}
	return l.phase(phaseStarting)
}

func (l *Lab) phase(phase string) error {
	nodes := []string{managementNode}
	for _, n := range l.plan.spaces() {
		nodes = append(nodes, n.Name)
	}
	return l.place.write(&state{
		Name: l.File.Name, Phase: phase, Owner: os.Getpid(), Path: l.File.Path, Source: string(l.File.Source), Attached: l.File.Attached, Plane: l.File.Network.Plane,
		Binary: l.opt.Binary, Nodes: nodes, Cgroup: string(l.root),
	})
}

// raise makes everything, in order. It looks at ctx between the steps that take time.
func (l *Lab) raise(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"directories", func(context.Context) error { return l.makePlaces() }},
		{"namespaces and links", l.build},
		{"daemons", l.startDaemons},
		{"network", l.settle},
		{"routes", l.converge},
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

// makePlaces makes directories, cgroups and the lab's own bpffs: pins go with it.
func (l *Lab) makePlaces() error {
	if err := l.root.make(); err != nil {
		return err
	}
	if err := l.writeHosts(); err != nil {
		return err
	}
	for _, n := range l.plan.spaces() {
		if err := os.MkdirAll(l.nodeDir(n), 0o755); err != nil {
			return err
		}
		if n.Kind != Host {
			continue
		}
		if err := l.writeEtc(n); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(l.place.bpf(), 0o700); err != nil {
		return err
	}
	if err := unix.Mount("scaffold-lab", l.place.bpf(), "bpf", 0, "mode=700"); err != nil {
		return fmt.Errorf("mount a bpffs on %s: %w", l.place.bpf(), err)
	}
	return nil
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
	labs, err := names(opt.dir())
	slices.Sort(labs)
	return labs, err
}
