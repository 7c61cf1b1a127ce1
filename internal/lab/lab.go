package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options are what a lab needs besides its file.
type Options struct {
	Dir    string                           // of the labs' state, DefaultDir if empty
	Binary string                           // the scaffold binary, this process's own if empty
	Log    func(format string, args ...any) // progress for people, nil for none

	stub []string // tests: what runs in place of every daemon, and nobody is asked whether it is ready
}

func (o Options) dir() string {
	if o.Dir == "" {
		return DefaultDir
	}
	return o.Dir
}

func (o Options) logf(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// A Lab is a network that is up, or being brought up.
type Lab struct {
	File *File

	opt     Options
	plan    *Plan
	place   place
	root    cgroup // of the lab
	release func() // gives the lock back; nil in a lab that this process only visits

	mu    sync.Mutex
	exits map[string]string // NODE/PROGRAM to how it ended, of what this process started
}

// newLab works out the names of everything; nothing is made.
func newLab(f *File, opt Options) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, ErrRoot
	}
	if opt.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		opt.Binary = self
	}
	root, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	return &Lab{
		File:  f,
		opt:   opt,
		plan:  MakePlan(f),
		place: place{opt.dir(), f.Name},
		root:  cgroup(filepath.Join(root, "scaffold-lab-"+f.Name)),
		exits: map[string]string{},
	}, nil
}

// ErrRoot is returned where root is needed; nothing has been touched then.
var ErrRoot = errors.New("a lab makes network namespaces and needs root: try again with sudo")

// ErrNone is returned where no lab, or no lab of that name, is up.
var ErrNone = errors.New("no lab is up")

// Open visits a lab that is up; an empty name means the only one.
func Open(name string, opt Options) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, ErrRoot
	}
	if name == "" {
		var err error
		if name, err = only(opt.dir()); err != nil {
			return nil, err
		}
	}
	s, err := place{opt.dir(), name}.read()
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("lab %s: %w", name, ErrNone)
	}
	f, err := parse(s.Path, []byte(s.Source), s.Attached)
	if err != nil {
		return nil, fmt.Errorf("lab %s: its state is of another version of scaffold: %w", name, err)
	}
	f.Name = name
	f.setPlane(s.Plane)
	opt.Binary = s.Binary
	return newLab(f, opt)
}

// only finds the lab that is meant where none was named.
func only(base string) (string, error) {
	labs, err := names(base)
	switch {
	case err != nil:
		return "", err
	case len(labs) == 0:
		return "", ErrNone
	case len(labs) > 1:
		return "", fmt.Errorf("several labs are up (%s): say which", strings.Join(labs, ", "))
	}
	return labs[0], nil
}

// Plan is what follows from the lab's file.
func (l *Lab) Plan() *Plan { return l.plan }

// Dir is the lab's state directory.
func (l *Lab) Dir() string { return l.place.dir() }

func (l *Lab) nodeDir(n *PlanNode) string { return l.place.node(n.Name) }

// ProgramDir is a program's own directory, ${dir} in its files and arguments.
func (l *Lab) ProgramDir(node, program string) string {
	return filepath.Join(l.place.node(node), program)
}

// LogPath is where the output of a daemon or program goes.
func (l *Lab) LogPath(node, program string) string {
	return filepath.Join(l.place.node(node), program+".log")
}

// Socket is the Unix socket of a node's daemon, "" for nodes without one: a switch has no API of ours.
func (l *Lab) Socket(node string) string {
	n := l.plan.Node(node)
	if n == nil || n.daemon() == "" || n.Kind == Switch {
		return ""
	}
	return filepath.Join(l.nodeDir(n), n.daemon()+".sock")
}

// Controller is the endpoint of the controller's API, "" in a network of plain IP.
func (l *Lab) Controller() string {
	if l.File.bare {
		return ""
	}
	for _, n := range l.File.of(Controller) { // of several any that runs will do: it hands on
		if c, err := net.DialTimeout("unix", l.Socket(n.Name), time.Second); err == nil {
			c.Close()
			return "unix:" + l.Socket(n.Name)
		}
	}
	return "unix:" + l.Socket(l.File.of(Controller)[0].Name)
}

// Cgroup is the cgroup directory of a node, or of one of its programs.
func (l *Lab) Cgroup(node, program string) string {
	if program == "" {
		return string(l.cgroup(node))
	}
	return string(l.cgroup(node).child(program))
}

func (l *Lab) cgroup(node string) cgroup { return l.root.child(node) }

// poll calls check until it returns nil, fails for good or ctx ends; then the last error tells why.
func poll(ctx context.Context, check func() error) error {
	return pollEvery(ctx, 5*time.Millisecond, check)
}

func pollEvery(ctx context.Context, pause time.Duration, check func() error) error {
	for {
		err := check()
		var final *finalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &final):
			return final.error
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// A finalError ends a poll: waiting would not help.
type finalError struct{ error }
