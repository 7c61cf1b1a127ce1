package switches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/openflow/ovs"
)

// Bridge is the name of the bridge of every switch: each has its own Open vSwitch.
const Bridge = "br0"

// answerTime bounds how long Open vSwitch's database may take to answer.
const answerTime = 20 * time.Second

// Processes start Open vSwitch's daemons inside nodes, run its tools there, and know what became of them.
type Processes interface {
	LookPath(program string) (string, error)
	Spawn(n *plan.Node, name string, cmd *exec.Cmd) error
	Output(n *plan.Node, cmd *exec.Cmd) ([]byte, error)
	Running(node, name string) bool
	State(node, name string) (state string, pids []int)
	Exited(node, name string) error
}

// Switches are those of one lab.
type Switches struct {
	plan  *plan.Plan
	dir   state.Dir
	procs Processes
	logf  func(format string, args ...any)
}

// New starts nothing. What is not as it should be and harms nobody goes to logf.
func New(p *plan.Plan, d state.Dir, procs Processes, logf func(format string, args ...any)) *Switches {
	return &Switches{p, d, procs, logf}
}

// Environ is what programs in a switch's node see, so that its tools find their daemons.
func Environ(d state.Dir, n *plan.Node) []string { return at(d, n).Env() }

func at(d state.Dir, n *plan.Node) ovs.Instance {
	return ovs.Instance{Dir: filepath.Join(d.Node(n.Name), "ovs")}
}

// instance is the Open vSwitch of a node.
func (s *Switches) instance(n *plan.Node) ovs.Instance {
	i := at(s.dir, n)
	i.Look = s.procs.LookPath
	return i
}

// Check is an error if the lab has switches and the machine has no Open vSwitch.
func (s *Switches) Check() error {
	for _, n := range s.plan.Nodes {
		if n.Kind != file.Switch {
			continue
		}
		if err := s.instance(n).Check(); err != nil {
			return fmt.Errorf("%s is a switch: %w", n.Name, err)
		}
	}
	return nil
}

// Start starts what does not run of a switch.
func (s *Switches) Start(ctx context.Context, n *plan.Node) error {
	i := s.instance(n)
	if !s.procs.Running(n.Name, file.OVSDB) {
		if err := s.startDatabase(ctx, n, i); err != nil {
			return err
		}
	}
	if s.procs.Running(n.Name, file.Vswitchd) {
		return nil
	}
	if err := s.configure(n, i); err != nil {
		return err
	}
	cmd, err := i.Daemon()
	if err != nil {
		return err
	}
	if err := s.procs.Spawn(n, file.Vswitchd, cmd); err != nil {
		return err
	}
	return s.settle(n, i)
}

// settle waits until the daemon has done what it was told, and makes room at its ports.
func (s *Switches) settle(n *plan.Node, i ovs.Instance) error {
	if now, _ := s.procs.State(n.Name, file.Vswitchd); now != "running" {
		return s.procs.Exited(n.Name, file.Vswitchd) // or stopped: it will follow when it goes on
	}
	if err := s.run(n, i.Settle); err != nil {
		return errors.Join(err, s.procs.Exited(n.Name, file.Vswitchd))
	}
	_, pids := s.procs.State(n.Name, file.Vswitchd)
	for _, pid := range pids {
		if _, _, err := ovs.Widen(pid, ovs.Buffer); err != nil {
			s.logf("lab %s: %s drops bursts: %v", s.plan.File.Name, n.Name, err) // as it does on other machines
		}
	}
	return nil
}

// startDatabase starts a switch's database, an empty one the first time, and waits until it answers.
func (s *Switches) startDatabase(ctx context.Context, n *plan.Node, i ovs.Instance) error {
	if err := os.MkdirAll(i.Dir, 0o755); err != nil {
		return err
	}
	if !i.Created() {
		if err := s.run(n, i.Create); err != nil {
			return err
		}
	}
	cmd, err := i.Database()
	if err != nil {
		return err
	}
	if err := s.procs.Spawn(n, file.OVSDB, cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return poll.Until(ctx, func() error {
		if err := s.procs.Exited(n.Name, file.OVSDB); err != nil {
			return poll.Final(err)
		}
		return i.Answers()
	})
}

// configure tells the Open vSwitch of a node what it has to be. Controllers that somebody added stay.
func (s *Switches) configure(n *plan.Node, i ovs.Instance) error {
	cfg := s.config(n)
	bridge := &cfg.Bridges[0]
	if cmd, err := i.Vsctl("--no-wait", "get-controller", bridge.Name); err == nil {
		has, _ := cmd.Output() // nothing: the bridge is not there yet
		missing := func(target string) bool { return !slices.Contains(strings.Fields(string(has)), target) }
		bridge.Connected = len(has) > 0 && !slices.ContainsFunc(bridge.Controllers, missing)
	}
	return s.run(n, func() (*exec.Cmd, error) { return i.Configure(cfg) })
}

// config is what the Open vSwitch of a node is told.
func (s *Switches) config(n *plan.Node) ovs.Config {
	b := ovs.Bridge{Name: Bridge, Description: n.Name, DatapathID: n.Datapath, Controllers: s.plan.OpenFlowTargets()}
	for _, p := range n.Data() {
		b.Ports = append(b.Ports, ovs.Port{Name: p.Dev, Number: p.Number})
	}
	return ovs.Config{Offload: true, Bridges: []ovs.Bridge{b}}
}

// Repatch tells a switch of a port that was removed or healed. By itself Open vSwitch would go on with the
// device that is gone, whatever is made in its place.
func (s *Switches) Repatch(n *plan.Node, p *plan.Port, verb string) error {
	if n.Kind != file.Switch || !s.procs.Running(n.Name, file.OVSDB) {
		return nil // it is configured anew when it starts
	}
	i := s.instance(n)
	switch verb {
	case "remove":
		words := []string{"--if-exists", "del-port", Bridge, p.Dev}
		if !s.procs.Running(n.Name, file.Vswitchd) {
			words = append([]string{"--no-wait"}, words...) // nobody would do it
		}
		return s.run(n, func() (*exec.Cmd, error) { return i.Vsctl(words...) })
	case "heal", "repair":
		if err := s.configure(n, i); err != nil {
			return err
		}
		return s.settle(n, i)
	}
	return nil
}

// run runs one of Open vSwitch's tools to its end.
func (s *Switches) run(n *plan.Node, prepare func() (*exec.Cmd, error)) error {
	cmd, err := prepare()
	if err != nil {
		return err
	}
	out, err := s.procs.Output(n, cmd)
	if err != nil {
		return fmt.Errorf("%s: %s: %w: %s", n.Name, filepath.Base(cmd.Path), err, bytes.TrimSpace(out))
	}
	return nil
}
