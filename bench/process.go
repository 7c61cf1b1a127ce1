package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/router/routerd"
)

// ticks is how many of the kernel's ticks are a second: USER_HZ, 100 on every architecture that Go runs on.
const ticks = 100

// cpuOf is the time of processors that a process has had; 0 for one that has ended.
func cpuOf(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	own, _ := processorTimes(string(text))
	return own
}

// treeCPU is the time of processors that a process has had, with all that it has started, those that have ended included.
func treeCPU(pid int) (all time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	for {
		own, ended := processorTimes(string(text))
		all = own + ended
		for _, child := range childrenOf(pid) {
			all += treeCPU(child)
		}
		// The time of a child that is waited for meanwhile is in neither: not in what was read before, and it is no child any more.
		text, _ = os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, now := processorTimes(string(text)); now == ended {
			return all
		}
	}
}

// processorTimes reads a process's /proc/PID/stat: its own time, and that of its children that have ended and been waited for.
func processorTimes(stat string) (own, ended time.Duration) {
	_, rest, _ := strings.Cut(stat, ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0
	}
	var n [4]int64
	for i := range n {
		fmt.Sscan(fields[11+i], &n[i]) //nolint:errcheck // the kernel writes numbers
	}
	return time.Duration(n[0]+n[1]) * time.Second / ticks, time.Duration(n[2]+n[3]) * time.Second / ticks
}

// childrenOf are the processes that a process has started and that are there.
func childrenOf(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has none
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
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

// kernelMemory is what the kernel keeps for a node of the lab: the maps of its router or its edge, and the memory of
// its TCP, those connections included that are not accepted yet.
func (r *Rig) kernelMemory(ctx context.Context, node string) (bytes float64, err error) {
	if r.Plan().Node(node).Kind == file.Host {
		err = r.AskHost(node, func(c apiv1connect.LocalClient) error {
			s, err := c.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
			if err == nil {
				bytes = float64(s.Msg.KernelBytes)
			}
			return err
		})
	} else {
		var s *scale
		var status routerd.Status
		if s, err = askRouter(r, node); err == nil {
			status, err = s.status(ctx)
			bytes = float64(status.TableBytes)
		}
	}
	return bytes, err
}

// tcpSlabs are the kernel's objects for connections and for what may become some, of the whole machine, in bytes.
func tcpSlabs() (bytes float64, err error) {
	text, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasSuffix(f[0], "TCPv6") && !strings.HasSuffix(f[0], "TCP") {
			continue
		}
		var active, size float64
		fmt.Sscan(f[1], &active) //nolint:errcheck // the kernel writes numbers
		fmt.Sscan(f[3], &size)   //nolint:errcheck // the same
		bytes += active * size
	}
	return bytes, nil
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
