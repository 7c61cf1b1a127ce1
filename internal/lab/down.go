package lab

import (
	"context"
	"errors"
	"fmt"
	"os"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/linux/private"
)

// Down removes a lab, up or left over. An empty name means the only one.
func Down(ctx context.Context, name string, opt Options) error {
	if os.Geteuid() != 0 {
		return ErrRoot
	}
	if name == "" {
		var err error
		if name, err = only(opt.dir()); err != nil {
			return err
		}
	}
	if err := file.CheckName(name); err != nil {
		return err
	}
	p := state.Dir{Base: opt.dir(), Lab: name}
	s, err := p.Read()
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("lab %s: %w", name, ErrNone)
	}
	release, err := p.Acquire()
	if err != nil {
		return err
	}
	defer release()
	return remove(ctx, p)
}

// DownAll removes all labs and what was left of others.
func DownAll(ctx context.Context, opt Options) (removed []string, err error) {
	if os.Geteuid() != 0 {
		return nil, ErrRoot
	}
	labs, err := state.Names(opt.dir())
	for _, name := range labs {
		if e := Down(ctx, name, opt); e != nil {
			err = errors.Join(err, e)
			continue
		}
		removed = append(removed, name)
	}
	return removed, err
}

// Sweep removes what labs left that died on their way up, down or through a run: their phase says
// so and nobody holds their lock.
func Sweep(ctx context.Context, opt Options) (removed []string, err error) {
	labs, err := state.Names(opt.dir())
	for _, name := range labs {
		p := state.Dir{Base: opt.dir(), Lab: name}
		if s, e := p.Read(); e == nil && s != nil && s.Phase == state.Up {
			continue
		}
		release, e := p.Acquire()
		if e != nil {
			continue // somebody works on it
		}
		if s, e := p.Read(); e != nil || s == nil || s.Phase != state.Up {
			opt.logf("lab %s: removing what a crash left", name)
			if e := remove(ctx, p); e != nil {
				err = errors.Join(err, e)
			} else {
				removed = append(removed, name)
			}
		}
		release()
	}
	return removed, err
}

// remove takes down a lab whose lock this process holds; the wish to stop does not stop it.
func (l *Lab) remove() error {
	defer l.release()
	return remove(context.Background(), l.dir)
}

// remove works from the written state alone, so that it can follow any crash, and goes on after a
// failure: what can go, goes.
func remove(ctx context.Context, p state.Dir) error {
	s, err := p.Read()
	if err != nil {
		return err
	}
	if s == nil { // killed between the directory and the first state: nothing was made
		return os.RemoveAll(p.Path())
	}
	s.Phase, s.Owner = state.Stopping, os.Getpid()
	errs := []error{p.Write(s), cgroups.Group(s.Cgroup).Remove(ctx)}
	for _, n := range s.Nodes {
		errs = append(errs, wires.RemoveNamespace(plan.Netns(s.Name, n)))
	}
	errs = append(errs, p.Unmount(), p.RemoveLarge())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab %s: %w", p.Lab, err)
	}
	if err := private.Sweep(); err != nil {
		return fmt.Errorf("lab %s: places of its daemons: %w", p.Lab, err)
	}
	os.Remove(plan.NetnsDir) // goes only if it is empty
	return os.RemoveAll(p.Path())
}
