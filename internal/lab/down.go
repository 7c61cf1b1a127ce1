package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
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
	if err := CheckName(name); err != nil {
		return err
	}
	p := place{opt.dir(), name}
	s, err := p.read()
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("lab %s: %w", name, ErrNone)
	}
	release, err := p.acquire()
	if err != nil {
		return err
	}
	defer release()
	return p.remove(ctx)
}

// DownAll removes all labs and what was left of others.
func DownAll(ctx context.Context, opt Options) (removed []string, err error) {
	if os.Geteuid() != 0 {
		return nil, ErrRoot
	}
	labs, err := names(opt.dir())
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
	labs, err := names(opt.dir())
	for _, name := range labs {
		p := place{opt.dir(), name}
		if s, e := p.read(); e == nil && s != nil && s.Phase == phaseUp {
			continue
		}
		release, e := p.acquire()
		if e != nil {
			continue // somebody works on it
		}
		if s, e := p.read(); e != nil || s == nil || s.Phase != phaseUp {
			opt.logf("lab %s: removing what a crash left", name)
			if e := p.remove(ctx); e != nil {
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
	return l.place.remove(context.Background())
}

// remove works from the written state alone, so that it can follow any crash, and goes on after a
// failure: what can go, goes.
func (p place) remove(ctx context.Context) error {
	s, err := p.read()
	if err != nil {
		return err
	}
	if s == nil { // killed between the directory and the first state: nothing was made
		return os.RemoveAll(p.dir())
	}
	s.Phase, s.Owner = phaseStopping, os.Getpid()
	errs := []error{p.write(s), cgroup(s.Cgroup).remove(ctx)}
	for _, n := range s.Nodes {
		errs = append(errs, removeNetns(Netns(s.Name, n)))
	}
	errs = append(errs, p.unmount())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab %s: %w", p.name, err)
	}
	os.Remove(netnsDir) // goes only if it is empty
	return os.RemoveAll(p.dir())
}

// unmount removes the lab's bpffs with all pins. Removing the directory as well detaches it in
// mount namespaces that copied it.
func (p place) unmount() error {
	if err := removePins(p.bpf()); err != nil {
		return err
	}
	for { // more than one only if something mounted over it
		err := unix.Unmount(p.bpf(), unix.MNT_DETACH)
		if err == unix.EINVAL || err == unix.ENOENT {
			break
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", p.bpf(), err)
		}
	}
	return os.RemoveAll(p.bpf())
}

// removePins unpins everything, so that nothing stays attached even if the mount has other users. Names
// with a dot are the kernel's own (its preloaded iterators) and cannot be removed.
func removePins(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // never made
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".") {
			continue
		}
		if e := os.RemoveAll(dir + "/" + e.Name()); e != nil {
			err = e
		}
	}
	return err
}
