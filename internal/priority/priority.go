// Package priority decides how soon a process gets a processor when it has something to do. Daemons that a network
// waits for run before programs that only have much to do.
package priority

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Nice levels, setpriority(2).
const (
	Most  = -20
	Least = 19
)

// Set gives a nice level to all threads of this process, and by them to those to come, and to its session where it
// leads one. Kernels that schedule sessions as groups (sched_autogroup_enabled, sched(7)) weigh the level of a thread
// against its own session alone.
func Set(nice int) error {
	return errors.Join(setThreads(nice), setSession(nice))
}

// setThreads goes on until it finds no thread that is still without: one may start another meanwhile.
func setThreads(nice int) error {
	for done := map[int]bool{}; ; {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		before := len(done)
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid] = true
			if err := setThread(tid, nice); err != nil && !errors.Is(err, unix.ESRCH) { // one that has ended
				return fmt.Errorf("nice level %d: %w", nice, err)
			}
		}
		if len(done) == before {
			return nil
		}
	}
}

// setThread makes no call that a sandbox could refuse where there is nothing to change.
func setThread(tid, nice int) error {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil || 20-raw == nice { // the system call gives 20 for level 0
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
}

func setSession(nice int) error {
	leader, err := unix.Getsid(0)
	if err != nil || leader != os.Getpid() {
		return err // a shell's: its other programs are not ours to favour
	}
	f, err := os.OpenFile("/proc/self/autogroup", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(strconv.Itoa(nice)); err != nil {
		return fmt.Errorf("nice level %d of the session: %w", nice, err)
	}
	return nil
}

// Ordinary takes from a child what it inherited of a raised level.
func Ordinary(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 0) }
