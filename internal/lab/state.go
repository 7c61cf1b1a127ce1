package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultDir is where labs keep what they know.
const DefaultDir = "/run/scaffold/lab"

// netnsDir holds named namespaces, as iproute2 has it.
const netnsDir = "/run/netns"

// Phases of a lab, as written in its state.
const (
	phaseStarting = "starting"
	phaseUp       = "up"
	phaseRunning  = "running" // `lab run`: gone with its process
	phaseStopping = "stopping"
)

// state is what a lab writes down before it makes anything: enough to remove all of it.
type state struct {
	Name     string            `json:"name"`
	Phase    string            `json:"phase"`
	Owner    int               `json:"owner"` // process that changed the phase last
	Path     string            `json:"file"`
	Source   string            `json:"source"`
	Attached map[string][]byte `json:"attached,omitempty"` // files that the source names
	Plane    string            `json:"plane"`              // of the source, or what the command said
	Binary   string            `json:"binary"`
	Nodes    []string          `json:"nodes"` // with the management network's
	Cgroup   string            `json:"cgroup"`
}

// place is where one lab keeps its files.
type place struct{ base, name string }

func (p place) dir() string             { return filepath.Join(p.base, p.name) }
func (p place) state() string           { return filepath.Join(p.dir(), "state.json") }
func (p place) lock() string            { return filepath.Join(p.base, "."+p.name+".lock") }
func (p place) bpf() string             { return filepath.Join(p.dir(), "bpf") }
func (p place) node(node string) string { return filepath.Join(p.dir(), node) }

// write replaces the state file at once, so that a crash leaves the old or the new.
func (p place) write(s *state) error {
	if err := os.MkdirAll(p.dir(), 0o755); err != nil {
		return fmt.Errorf("state of lab %s: %w", p.name, err)
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	next := p.state() + ".new"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return fmt.Errorf("state of lab %s: %w", p.name, err)
	}
	return os.Rename(next, p.state())
}

// read returns nil where there is no such lab.
func (p place) read() (*state, error) {
	text, err := os.ReadFile(p.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state of lab %s: %w", p.name, err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("state of lab %s: %s: %w", p.name, p.state(), err)
	}
	return s, nil
}

// A BusyError says that another process is changing the lab.
type BusyError struct {
	Name  string
	Owner int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("lab %s is in the hands of process %d (scaffold lab up, run or down): wait for it or end it", e.Name, e.Owner)
}

// acquire takes the lab's lock, which the kernel gives back when this process dies.
func (p place) acquire() (release func(), err error) {
	for {
		if err := os.MkdirAll(p.base, 0o755); err != nil {
			return nil, fmt.Errorf("lab %s: %w", p.name, err)
		}
		f, err := os.OpenFile(p.lock(), os.O_CREATE|os.O_RDWR, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last lab went away and took the directory with it
		}
		if err != nil {
			return nil, fmt.Errorf("lab %s: %w", p.name, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			return nil, p.busy()
		}
		if p.holds(f) {
			return func() { p.release(f) }, nil
		}
		f.Close() // removed by its former owner between open and flock
	}
}

// holds reports whether the open lock file is still the one that the path names.
func (p place) holds(f *os.File) bool {
	open, err1 := f.Stat()
	named, err2 := os.Stat(p.lock())
	return err1 == nil && err2 == nil && os.SameFile(open, named)
}

// release gives the lock back; the last lab to go takes the empty directories with it.
func (p place) release(f *os.File) {
	os.Remove(p.lock())
	f.Close()
	if os.Remove(p.base) == nil {
		os.Remove(filepath.Dir(p.base))
	}
}

func (p place) busy() error {
	e := &BusyError{Name: p.name}
	if s, err := p.read(); err == nil && s != nil {
		e.Owner = s.Owner
	}
	return e
}

// names lists the labs that have state, up or left over.
func names(base string) (labs []string, err error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			labs = append(labs, e.Name())
		}
	}
	return labs, err
}
