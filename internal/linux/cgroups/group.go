// Package cgroups finds cgroup v2, and holds processes together by it, so that they end with all their children, whatever they
// forked.
package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Group is a directory of cgroup v2: what is to be killed together is in one.
type Group string

// Make makes the group and those above it.
func (c Group) Make() error { return os.MkdirAll(string(c), 0o755) }

// Join moves this process into the group, with all its threads.
func (c Group) Join() error {
	if err := os.WriteFile(filepath.Join(string(c), "cgroup.procs"), []byte("0"), 0); err != nil { // 0: who writes
		return fmt.Errorf("join %s: %w", c, err)
	}
	return nil
}

// Child is a group below.
func (c Group) Child(name string) Group { return Group(filepath.Join(string(c), name)) }

// walk calls f for the cgroup and all below it, the lowest first.
func (c Group) walk(f func(Group)) {
	entries, _ := os.ReadDir(string(c))
	for _, e := range entries {
		if e.IsDir() {
			c.Child(e.Name()).walk(f)
		}
	}
	f(c)
}

// PIDs lists the processes in the cgroup and below.
func (c Group) PIDs() (pids []int) {
	c.walk(func(c Group) {
		text, _ := os.ReadFile(filepath.Join(string(c), "cgroup.procs"))
		for _, line := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	})
	return pids
}

// Signal sends a signal to every process. SIGKILL goes to all at once, so that none can fork away.
func (c Group) Signal(s syscall.Signal) error {
	if s == syscall.SIGKILL {
		err := os.WriteFile(filepath.Join(string(c), "cgroup.kill"), []byte("1"), 0)
		if !errors.Is(err, fs.ErrNotExist) || !c.exists() {
			return ignoreGone(err)
		}
	}
	for _, pid := range c.PIDs() { // kernels before 5.14 have no cgroup.kill
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("send %v to process %d: %w", s, pid, err)
		}
	}
	return nil
}

func (c Group) exists() bool {
	_, err := os.Stat(string(c))
	return err == nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

// killTime bounds how long killed processes may take to be gone.
const killTime = 10 * time.Second

// Kill ends everything in the cgroup, waits until it is gone and removes the cgroup: kernels up to
// 6.18 at least kill whatever is cloned into a cgroup that was killed before.
func (c Group) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	for {
		if err := c.Signal(syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill %s: %w", c, err)
		}
		err := c.RemoveEmpty()
		if err == nil || !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kill %s: processes %v do not end: %w", c, c.PIDs(), ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Remove ends everything in the cgroup and removes it.
func (c Group) Remove(ctx context.Context) error {
	if !c.exists() {
		return nil
	}
	return c.Kill(ctx)
}

// RemoveEmpty removes the group and all below it, if no process is in them.
func (c Group) RemoveEmpty() (failed error) {
	c.walk(func(c Group) {
		if err := os.Remove(string(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = fmt.Errorf("remove %s: %w", c, err)
		}
	})
	return failed
}
