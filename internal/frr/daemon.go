package frr

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/nsenter"
)

// A daemon is one process of FRR.
type daemon struct {
	name, router string
	log          string // path
	cmd          *exec.Cmd
	done         chan struct{}
	err          error // how it ended; valid after done
}

// start forks inside the namespace, into the cgroup: the daemon is never anywhere else.
func (d *daemon) start(netns, cgroup string) error {
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's interrupt is not meant for it
	if cgroup != "" {
		dir, err := os.Open(cgroup)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		defer dir.Close()
		d.cmd.SysProcAttr.UseCgroupFD, d.cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	return nsenter.DoAt(netns, d.cmd.Start)
}

func (d *daemon) wait() {
	d.err = d.cmd.Wait()
	close(d.done)
}

// await returns when the daemon has made a file, or an error when it ends before.
func (d *daemon) await(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-d.done:
			return d.obituary()
		case <-ctx.Done():
			return fmt.Errorf("%s of %s has not made %s: %w; see %s%s", d.name, d.router, path, ctx.Err(), d.log, d.tail())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// obituary names the daemon and says how it ended and where to read more.
func (d *daemon) obituary() error {
	how := "without an error"
	if d.err != nil {
		how = d.err.Error()
	}
	return fmt.Errorf("%s of %s ended: %s; see %s%s", d.name, d.router, how, d.log, d.tail())
}

// tailLines is how much of a log is put into an error.
const tailLines = 5

func (d *daemon) tail() string {
	text, err := os.ReadFile(d.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || len(text) == 0 {
		return ""
	}
	return ", which ends with:\n" + strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// stopTime is how long a daemon gets to end by itself: on a busy machine one with many routes takes seconds.
const stopTime = 20 * time.Second

func (d *daemon) stop() error {
	d.cmd.Process.Signal(syscall.SIGTERM) // one that has ended does not mind
	select {
	case <-d.done:
		return nil
	case <-time.After(stopTime):
	}
	d.cmd.Process.Kill()
	<-d.done
	return fmt.Errorf("%s of %s did not end on SIGTERM in %v and was killed; see %s", d.name, d.router, stopTime, d.log)
}
