package guests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// A tether is what keeps a guest: the process that its namespace is known by, or names of files, or both where a name
// is a link to a process's. It is cut when the process has ended, or the name leads nowhere or elsewhere.
type tether struct {
	path    string
	inode   uint64
	named   bool
	process int // a pidfd, -1 where no process is meant
	dirs    []int
}

// cut reports whether that is no more.
func (x *tether) cut() bool {
	if x.process >= 0 {
		set := []unix.PollFd{{Fd: int32(x.process), Events: unix.POLLIN}}
		if n, err := unix.Poll(set, 0); err == nil && n > 0 {
			return true
		}
	}
	if !x.named {
		return false
	}
	inode, err := inodeOf(x.path)
	return err != nil || inode != x.inode
}

// What is waited for in a directory of names. That a name was put where there is one is told by the mounts.
const nameEvents = unix.IN_ONLYDIR | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// trace follows the path to what it depends on: directories with names, and a process at last.
func (e *tethers) trace(x *tether) error {
	path := x.path
	for range 40 { // as many links as the kernel follows
		if pid := processOf(path); pid > 0 {
			return e.traceProcess(x, pid)
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return err
		}
		if path = filepath.Join(dir, filepath.Base(path)); processOf(path) > 0 {
			continue
		}
		if err := e.traceName(x, dir); err != nil {
			return err
		}
		to, err := os.Readlink(path)
		if errors.Is(err, unix.EINVAL) {
			return nil // the name itself
		}
		if err != nil {
			return err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return fmt.Errorf("%s: too many links", x.path)
}

func (e *tethers) traceProcess(x *tether, pid int) (err error) {
	if x.process, err = unix.PidfdOpen(pid, 0); err != nil {
		x.process = -1
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("%d is a thread: name its process", pid)
		}
		return fmt.Errorf("%w at %s: process %d: %w", errNoNamespace, x.path, pid, err)
	}
	return e.add(x.process, unix.EPOLLIN|unix.EPOLLONESHOT)
}

func (e *tethers) traceName(x *tether, dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("%s belongs to a process of another /proc, whose end is not told here: give the process by --pid, or bind the namespace to a file", x.path)
	}
	wd, err := unix.InotifyAddWatch(e.names, dir, nameEvents)
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	e.dirs[wd]++
	x.named, x.dirs = true, append(x.dirs, wd)
	return nil
}

var ofProcess = regexp.MustCompile(`^/proc/([0-9]+)/`)

// processOf is the process whose end takes the path away, 0 for none.
func processOf(path string) int {
	if m := ofProcess.FindStringSubmatch(path); m != nil {
		pid, _ := strconv.Atoi(m[1]) // too large a number is no process
		return pid
	}
	return 0
}
