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

func setThreads(nice int) error {
	return eachThread(os.Getpid(), func(tid, level int) error {
		if level == nice {
			return nil // a sandbox may refuse the call
		}
		return unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
	})
}

// eachThread calls f with the threads of a process and their levels, until it finds none that it has not seen: one may
// start another meanwhile.
func eachThread(pid int, f func(tid, level int) error) error {
	for done := map[int]bool{}; ; {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
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
			raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
			if err == nil {
				err = f(tid, 20-raw) // the system call gives 20 for level 0
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // one that has ended
				return fmt.Errorf("nice level of thread %d: %w", tid, err)
			}
		}
		if len(done) == before {
			return nil
		}
	}
}

// Thread gives a nice level to the calling thread alone, which must be locked and ends with its goroutine: its level goes to no
// other.
func Thread(nice int) error { return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice) }

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

// Ordinary takes from a process what it has inherited of a raised level.
func Ordinary(pid int) error {
	return eachThread(pid, func(tid, level int) error {
		if level >= 0 {
			return nil
		}
		return unix.Setpriority(unix.PRIO_PROCESS, tid, 0)
	})
}
