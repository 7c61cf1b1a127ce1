package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/control"
	"scaffold.dev/scaffold/internal/lab/daemons"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/links"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/processes"
	"scaffold.dev/scaffold/internal/lab/programs"
	"scaffold.dev/scaffold/internal/lab/routing"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/lab/switches"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// DefaultDir is where labs keep what they know.
const DefaultDir = "/run/scaffold/lab"

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
	File *file.File

	opt     Options
	plan    *plan.Plan
	dir     state.Dir
	release func() // gives the lock back; nil in a lab that this process only visits

	procs    *processes.Processes
	engine   *engine.Engine
	switches *switches.Switches
	routing  *routing.Routing
	control  *control.Control
	links    *links.Links
	programs *programs.Programs
}

// newLab works out the names of everything; nothing is made.
func newLab(f *file.File, opt Options) (*Lab, error) {
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
	root, err := cgroups.Mount()
	if err != nil {
		return nil, err
	}
	l := &Lab{
		File: f,
		opt:  opt,
		plan: plan.Make(f),
		dir:  state.Dir{Base: opt.dir(), Lab: f.Name},
	}
	l.procs = processes.New(processes.Config{
		Plan: l.plan, Dir: l.dir, Binary: opt.Binary, Besides: func(n *plan.Node) []string { return besides(l.dir, n) },
		Root: cgroups.Group(filepath.Join(root, "scaffold-lab-"+f.Name)),
	})
	l.engine = engine.New(engine.Config{Plan: l.plan, Dir: l.dir, Binary: opt.Binary, Processes: l.procs})
	l.switches = switches.New(l.plan, l.dir, l.procs, opt.logf)
	l.routing = routing.New(routing.Config{Plan: l.plan, Dir: l.dir, Processes: l.procs, Lend: lend, Learned: l.engine.Learned, Log: opt.logf})
	l.control = control.New(control.Config{Plan: l.plan, Dir: l.dir, Processes: l.procs, Alive: l.daemonsAlive, Stub: opt.stub != nil})
	l.programs = programs.New(programs.Config{
		Plan: l.plan, Dir: l.dir, Binary: opt.Binary, Processes: l.procs, ServiceAddr: l.control.ServiceAddr, Stub: opt.stub != nil,
	})
	l.links = links.New(links.Config{Plan: l.plan, Engine: l.engine, Repatch: l.switches.Repatch, Attached: l.control.Attached})
	return l, nil
}

// besides is what programs of a node see besides what programs of all nodes do.
func besides(d state.Dir, n *plan.Node) []string {
	if n.Kind == file.Switch {
		return switches.Environ(d, n)
	}
	return daemons.Environ(d, n)
}

// lend gives an interface of a node one more address.
func lend(n *plan.Node, dev string, addr netip.Prefix) error {
	w := wires.New()
	defer w.Close()
	return w.Addr(n.Netns, dev, addr)
}

// Binary is the scaffold that the lab is made of.
func (l *Lab) Binary() string { return l.opt.Binary }

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
	s, err := state.Dir{Base: opt.dir(), Lab: name}.Read()
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("lab %s: %w", name, ErrNone)
	}
	f, err := file.ParseWith(s.Path, []byte(s.Source), s.Attached)
	if err != nil {
		return nil, fmt.Errorf("lab %s: its state is of another version of scaffold: %w", name, err)
	}
	f.Name = name
	f.UsePlane(s.Plane)
	opt.Binary = s.Binary
	return newLab(f, opt)
}

// only finds the lab that is meant where none was named.
func only(base string) (string, error) {
	labs, err := state.Names(base)
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

// Engine is what is emulated of the lab.
func (l *Lab) Engine() *engine.Engine { return l.engine }

// Plan is what follows from the lab's file.
func (l *Lab) Plan() *plan.Plan { return l.plan }

// Dir is the lab's state directory.
func (l *Lab) Dir() string { return l.dir.Path() }

// LargeDir makes a directory on disk that goes with the lab, in place of the one that it has made before.
func (l *Lab) LargeDir() (string, error) { return l.dir.Large() }

// ProgramDir is a program's own directory, ${dir} in its files and arguments.
func (l *Lab) ProgramDir(node, program string) string {
	return l.dir.Program(node, program)
}

// LogPath is where the output of a daemon or program goes.
func (l *Lab) LogPath(node, program string) string {
	return l.dir.Log(node, program)
}

// Socket is the Unix socket of a node's daemon, "" for nodes without one: a switch has no API of ours.
func (l *Lab) Socket(node string) string { return l.dir.Socket(l.plan.Node(node)) }

// Journal is the file of a host's decisions, where the lab file asks for them.
func (l *Lab) Journal(host string) string { return l.dir.Journal(host) }

// Controller is the endpoint of the controller's API, "" in a network of plain IP.
func (l *Lab) Controller() string { return l.control.Endpoint() }

// Admin is a client of the controller's API.
func (l *Lab) Admin() (apiv1connect.AdminClient, error) { return l.control.Admin() }

// Boosting is a client of what the controller says about agents of boost.
func (l *Lab) Boosting() (apiv1connect.BoostClient, error) { return l.control.Boosting() }

// Boosts is an error that says which agent, or which entry, does not carry connections now.
func (l *Lab) Boosts(ctx context.Context) error { return l.control.Boosts(ctx) }

// Address is the address by which a host speaks for itself: in a network of plain IP its first one of IPv4, else the one at the
// router where it is.
func (l *Lab) Address(ctx context.Context, host string) (netip.Addr, error) {
	if !l.File.Bare {
		return l.control.HostAddr(ctx, host)
	}
	for _, a := range l.plan.Node(host).Ports[0].Addrs {
		if a.Addr().Is4() {
			return a.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("host %s has no address of IPv4", host)
}

// Traffic counts what each link carries, in the order of the file.
func (l *Lab) Traffic() []links.Traffic { return l.links.Traffic() }

// Cgroup is the cgroup directory of a node, or of one of its programs.
func (l *Lab) Cgroup(node, program string) string { return string(l.procs.Group(node, program)) }
