package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many of the kernel's ticks are a second: USER_HZ, 100 on every architecture that Go runs on.
const ticks = 100

// CPU is the time of processors that a process has had; 0 for one that has ended.
func CPU(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	own, _ := times(string(text))
	return own
}

// TreeCPU is the time of processors that a process has had, with all that it has started, those that have ended included.
func TreeCPU(pid int) (all time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	for {
		own, ended := times(string(text))
		all = own + ended
		for _, child := range Children(pid) {
			all += TreeCPU(child)
		}
		// The time of a child that is waited for meanwhile is in neither: not in what was read before, and it is no child any more.
		text, _ = os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, now := times(string(text)); now == ended {
			return all
		}
	}
}

// times reads a process's /proc/PID/stat: its own time, and that of its children that have ended and been waited for.
func times(stat string) (own, ended time.Duration) {
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

// Children are the processes that a process has started and that are there.
func Children(pid int) (pids []int) {
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

// Resident is what a process has in RAM, in bytes; 0 for one that has ended.
func Resident(pid int) (bytes float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(rest, &bytes) //nolint:errcheck // the kernel writes numbers
		}
	}
	return bytes * 1024
}
