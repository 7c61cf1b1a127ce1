package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/rig"
)

// Driven are the agents of a lab's file, which a controller tells what to carry.
type Driven struct {
	*rig.Rig
	Boost apiv1connect.BoostClient // of the controller
}

// process is what an agent runs, besides its host's daemon.
const process = "boostd"

// Of takes a lab that is up: its agents carry what the file says.
func Of(l *lab.Lab) (*Driven, error) {
	r, err := rig.New(l)
	if err != nil {
		return nil, err
	}
	boost, err := l.Boosting()
	return &Driven{r, boost}, err
}

// KillWorker kills the process that does an agent's work: of its two processes the one that the other started.
func (d *Driven) KillWorker(name string) error {
	text, _ := os.ReadFile(filepath.Join(d.Cgroup(name, process), "cgroup.procs")) // none: it does not run
	pids := strings.Fields(string(text))
	for _, pid := range pids {
		if slices.Contains(pids, parentOf(pid)) {
			n, err := strconv.Atoi(pid)
			return errors.Join(err, syscall.Kill(n, syscall.SIGKILL))
		}
	}
	return fmt.Errorf("agent %s has no worker; its processes are %v, its log is %s", name, pids, d.LogPath(name, process))
}

// parentOf is the parent of a process, "" where that is not known.
func parentOf(pid string) string {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ") // behind its name, which may have anything in it
	if fields := strings.Fields(rest); len(fields) > 1 {
		return fields[1]
	}
	return ""
}

// Kill kills both processes of an agent.
func (d *Driven) Kill(name string) error {
	return d.Act(context.Background(), "kill %s/%s", name, process)
}

// Restart starts an agent that was killed, and waits until connections are carried.
func (d *Driven) Restart(ctx context.Context, name string) error {
	if err := d.Act(ctx, "start %s/%s", name, process); err != nil {
		return err
	}
	return d.Carries(ctx)
}

// Carries waits until all agents have taken what they are to carry, and see each other.
func (d *Driven) Carries(ctx context.Context) error {
	for {
		err := d.Boosts(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(lookEach):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// End leaves the agents to the lab.
func (*Driven) End() {}
