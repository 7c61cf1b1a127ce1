package processes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
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

// Signal reaches every process of a program, or of a node. A SIGKILL is waited for: afterwards all
// are gone.
func (p *Processes) Signal(ctx context.Context, node, program string, s syscall.Signal) error {
	c := p.Group(node, program)
	switch {
	case len(c.PIDs()) == 0:
		return fmt.Errorf("nothing runs there")
	case s == syscall.SIGKILL:
		return c.Kill(ctx)
	}
	return c.Signal(s)
}

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
func processState(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	after := string(text[strings.LastIndexByte(string(text), ')')+1:])
	switch {
	case err != nil || len(after) < 2:
		return "down"
	case after[1] == 'T':
		return "stopped"
	}
	return "running"
}
