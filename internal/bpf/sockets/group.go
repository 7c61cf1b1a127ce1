package sockets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Cgroup is a child of the cgroup that this process is in, for programs that are treated alike.
type Cgroup struct {
	parent *os.File
	dir    *os.File
	name   string
}

// NewCgroup makes one whose name begins with prefix.
func NewCgroup(prefix string) (*Cgroup, error) {
	root, err := CgroupRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	parent, err := os.Open(filepath.Join(procPath(root), ownCgroup()))
	if err != nil {
		return nil, fmt.Errorf("open the cgroup that this process is in: %w", err)
	}
	g := &Cgroup{parent: parent, name: fmt.Sprintf("%s-%d", prefix, os.Getpid())}
	if err := unix.Mkdirat(int(parent.Fd()), g.name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		parent.Close()
		return nil, fmt.Errorf("make cgroup %s: %w", g.name, err)
	}
	if g.dir, err = os.Open(filepath.Join(procPath(parent), g.name)); err != nil {
		g.Remove()
		return nil, fmt.Errorf("open cgroup %s: %w", g.name, err)
	}
	return g, nil
}

// ownCgroup is the path of this process in the hierarchy of version 2: the line "0::/path".
func ownCgroup() string {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return "/"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if path, ok := strings.CutPrefix(s.Text(), "0::"); ok {
			return path
		}
	}
	return "/"
}

// Path names the cgroup for as long as it is open.
func (g *Cgroup) Path() string { return procPath(g.dir) }

// FD is what a process is started into.
func (g *Cgroup) FD() int { return int(g.dir.Fd()) }

// Signal sends a signal to every process of the cgroup.
func (g *Cgroup) Signal(sig unix.Signal) {
	text, _ := os.ReadFile(filepath.Join(g.Path(), "cgroup.procs"))
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			unix.Kill(pid, sig)
		}
	}
}

// Wait returns when no process is left in the cgroup and its children.
func (g *Cgroup) Wait() error {
	f, err := os.Open(filepath.Join(g.Path(), "cgroup.events"))
	if err != nil {
		return err
	}
	defer f.Close()
	for buf := make([]byte, 256); ; {
		n, err := f.ReadAt(buf, 0)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read cgroup.events: %w", err)
		}
		if strings.Contains(string(buf[:n]), "populated 0") {
			return nil
		}
		unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, -1) // a signal ends it: look again
	}
}

// Remove ends what still runs in the cgroup and removes it.
func (g *Cgroup) Remove() error {
	defer g.parent.Close()
	if g.dir != nil {
		defer g.dir.Close()
		os.WriteFile(filepath.Join(g.Path(), "cgroup.kill"), []byte("1"), 0) // from 5.14 on
	}
	var err error
	for range 200 {
		if err = unix.Unlinkat(int(g.parent.Fd()), g.name, unix.AT_REMOVEDIR); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(5 * time.Millisecond) // killed processes leave the cgroup a moment later
	}
	return fmt.Errorf("remove cgroup %s: %w", g.name, err)
}
