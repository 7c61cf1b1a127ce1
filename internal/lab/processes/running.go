package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/lab/poll"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// Running reports whether a program or daemon of a node has processes.
// What a daemon left to go on without it, the WireGuard of its tunnels, does not count.
func (p *Processes) Running(node, name string) bool {
	return slices.ContainsFunc(p.Group(node, name).PIDs(), func(pid int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !bytes.Contains(line, []byte("\x00wireguard\x00"))
	})
}

// Kill kills one program or daemon with all its children.
func (p *Processes) Kill(ctx context.Context, node, name string) error {
	return p.Group(node, name).Kill(ctx)
}

// stopTime bounds how long processes may take to stop: a thread may be in the middle of a long system call.
const stopTime = time.Second

// Signal reaches every process of a program, or of a node. What it does is waited for where a program has no say in it:
// after SIGKILL all are gone, after SIGSTOP none runs.
func (p *Processes) Signal(ctx context.Context, node, program string, s syscall.Signal) error {
	c := p.Group(node, program)
	switch {
	case len(c.PIDs()) == 0:
		return fmt.Errorf("nothing runs there")
	case s == syscall.SIGKILL:
		return c.Kill(ctx)
	}
	if err := c.Signal(s); err != nil || s != syscall.SIGSTOP {
		return err
	}
	p.awaitStopped(ctx, c)
	return nil
}

// awaitStopped returns when all threads have stopped. Of a process's threads one takes the signal and tells the others:
// until it gets a processor, these go on, and an answer may come from a daemon that was stopped (do_signal_stop, Linux).
func (p *Processes) awaitStopped(ctx context.Context, c cgroups.Group) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	_ = poll.Until(ctx, func() error { // one that waits in the kernel stops when it comes back
		for _, pid := range c.PIDs() {
			threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
			for _, stat := range threads {
				if stateOf(stat) == "running" {
					return errRuns
				}
			}
		}
		return nil
	})
}

var errRuns = errors.New("a thread runs")

// State is what a program or daemon of a node is doing, "running", "stopped" (by a signal) or "down", and its processes.
func (p *Processes) State(node, name string) (state string, pids []int) {
	state, pids = "down", p.Group(node, name).PIDs()
	sort.Ints(pids)
	for _, pid := range pids {
		if state = processState(pid); state == "running" {
			break
		}
	}
	return state, pids
}

// processState reads the letter after the last bracket of /proc/PID/stat.
func processState(pid int) string { return stateOf("/proc/" + strconv.Itoa(pid) + "/stat") }

func stateOf(stat string) string {
	text, err := os.ReadFile(stat)
	after := string(text[strings.LastIndexByte(string(text), ')')+1:])
	switch {
	case err != nil || len(after) < 2 || strings.ContainsRune("ZX", rune(after[1])): // ended, and not waited for yet
		return "down"
	case after[1] == 'T':
		return "stopped"
	}
	return "running"
}
