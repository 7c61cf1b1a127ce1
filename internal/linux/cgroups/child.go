package cgroups

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Child is a group below the one that this process is in, for programs that are treated alike. It is held open, for the
// hierarchy may be mounted nowhere that this process sees; its path is good for as long, and in this process alone.
type Child struct {
	Group
	parent, dir *os.File
}

// NewChild makes one whose name begins with prefix.
func NewChild(prefix string) (*Child, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	parent, err := os.Open(filepath.Join(Path(root), own()))
	if err != nil {
		return nil, fmt.Errorf("open the cgroup that this process is in: %w", err)
	}
	g := &Child{parent: parent, Group: Group(Path(parent)).Child(fmt.Sprintf("%s-%d", prefix, os.Getpid()))}
	if err := g.Make(); err != nil {
		parent.Close()
		return nil, fmt.Errorf("make cgroup %s: %w", filepath.Base(string(g.Group)), err)
	}
	if g.dir, err = os.Open(string(g.Group)); err != nil {
		g.Close() // the first error is told
		return nil, fmt.Errorf("open cgroup %s: %w", filepath.Base(string(g.Group)), err)
	}
	return g, nil
}

// own is the path of this process in the hierarchy of version 2: the line "0::/path".
func own() string {
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

// FD is what a process is started into.
func (g *Child) FD() int { return int(g.dir.Fd()) }

// Wait returns when no process is left in the group and those below it.
func (g *Child) Wait() error {
	f, err := os.Open(filepath.Join(string(g.Group), "cgroup.events"))
	if err != nil {
		return err
	}
	defer f.Close()
	for buf := make([]byte, 256); ; {
		n, err := f.ReadAt(buf, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read cgroup.events: %w", err)
		}
		if strings.Contains(string(buf[:n]), "populated 0") {
			return nil
		}
		unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, -1) //nolint:errcheck // a signal ends it: look again
	}
}

// Close ends what still runs in the group and removes it.
func (g *Child) Close() error {
	defer g.parent.Close()
	if g.dir != nil {
		defer g.dir.Close()
	}
	return g.Remove(context.Background())
}
