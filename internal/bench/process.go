package bench

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// ticks is how many of the kernel's ticks are a second: USER_HZ, 100 on every architecture that Go runs on.
const ticks = 100

// cpuOf is the time of processors that a process has had; 0 for one that has ended.
func cpuOf(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var user, system int64
	fmt.Sscan(fields[11], &user)   //nolint:errcheck // the kernel writes numbers
	fmt.Sscan(fields[12], &system) //nolint:errcheck // the same
	return time.Duration(user+system) * time.Second / ticks
}

// resident is what a process has in RAM, in bytes; 0 for one that has ended.
func resident(pid int) (bytes float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(rest, &bytes) //nolint:errcheck // the kernel writes numbers
		}
	}
	return bytes * 1024
}

// use is what the daemons of a node have taken so far.
type use struct {
	cpu   time.Duration
	bytes float64
}

// uses are those of each node.
func (r *Rig) uses() (map[string]use, error) {
	status, err := r.Status()
	if err != nil {
		return nil, err
	}
	all := make(map[string]use)
	for _, n := range status.Nodes {
		u := all[n.Name]
		for _, p := range n.Processes {
			for _, pid := range p.PIDs {
				u.cpu, u.bytes = u.cpu+cpuOf(pid), u.bytes+resident(pid)
			}
		}
		all[n.Name] = u
	}
	return all, nil
}
