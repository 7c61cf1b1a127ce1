package lab

import (
	"bufio"
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

// cgroupRoot finds the cgroup v2 mount; in hybrid mode it is not /sys/fs/cgroup.
func cgroupRoot() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		left, right, ok := strings.Cut(s.Text(), " - ")
		if words := strings.Fields(left); ok && len(words) > 4 && strings.HasPrefix(right, "cgroup2 ") {
			return words[4], nil
		}
	}
	return "", errors.New("no cgroup v2 is mounted, and the lab needs it to end programs with all their children: mount -t cgroup2 none /sys/fs/cgroup")
}

// A cgroup is a directory of cgroup v2: of a lab, of a node or of one program.
type cgroup string

func (c cgroup) make() error { return os.MkdirAll(string(c), 0o755) }

func (c cgroup) child(name string) cgroup { return cgroup(filepath.Join(string(c), name)) }

// walk calls f for the cgroup and all below it, the lowest first.
func (c cgroup) walk(f func(cgroup)) {
	entries, _ := os.ReadDir(string(c))
	for _, e := range entries {
		if e.IsDir() {
			c.child(e.Name()).walk(f)
		}
	}
	f(c)
}

// pids lists the processes in the cgroup and below.
func (c cgroup) pids() (pids []int) {
	c.walk(func(c cgroup) {
		text, _ := os.ReadFile(filepath.Join(string(c), "cgroup.procs"))
		for _, line := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	})
	return pids
}

// signal sends a signal to every process. SIGKILL goes to all at once, so that none can fork away.
func (c cgroup) signal(s syscall.Signal) error {
	if s == syscall.SIGKILL {
		err := os.WriteFile(filepath.Join(string(c), "cgroup.kill"), []byte("1"), 0)
		if !errors.Is(err, fs.ErrNotExist) || !c.exists() {
			return ignoreGone(err)
		}
	}
	for _, pid := range c.pids() { // kernels before 5.14 have no cgroup.kill
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("send %v to process %d: %w", s, pid, err)
		}
	}
	return nil
}

func (c cgroup) exists() bool {
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

// kill ends everything in the cgroup, waits until it is gone and removes the cgroup: kernels up to
// 6.18 at least kill whatever is cloned into a cgroup that was killed before.
func (c cgroup) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	for {
		if err := c.signal(syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill %s: %w", c, err)
		}
		err := c.rmdir()
		if err == nil || !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kill %s: processes %v do not end: %w", c, c.pids(), ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// remove ends everything in the cgroup and removes it.
func (c cgroup) remove(ctx context.Context) error {
	if !c.exists() {
		return nil
	}
	return c.kill(ctx)
}

func (c cgroup) rmdir() (failed error) {
	c.walk(func(c cgroup) {
		if err := os.Remove(string(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = fmt.Errorf("remove %s: %w", c, err)
		}
	})
	return failed
}
