package lab

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// node finds a node by name.
func (l *Lab) node(name string) (*plan.Node, error) {
	if n := l.plan.Node(name); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("lab %s has no node %q; it has %s", l.File.Name, name, l.File.Names())
}

// In calls f on a thread inside the network namespace of a node: sockets that f opens are the node's.
func (l *Lab) In(node string, f func() error) error {
	n, err := l.node(node)
	if err != nil {
		return err
	}
	return wires.In(n.Netns, f)
}

// Start starts a prepared command inside a node, in one of its cgroups: it ends with the lab, whoever
// waits for it. Where cmd.Env is nil it gets the node's environment.
func (l *Lab) Start(node string, cmd *exec.Cmd) error {
	n, err := l.node(node)
	if err != nil {
		return err
	}
	return l.procs.Start(n, file.ExecGroup, cmd)
}

// Exec turns this process into a command inside a node. It returns only if that failed.
func (l *Lab) Exec(node string, argv []string) error {
	n, err := l.node(node)
	if err != nil {
		return err
	}
	return l.procs.Exec(n, argv)
}

// Command prepares a command for Start, to be run in any node: as it is written, without variables. A name
// without a slash is looked for where nodes look for programs. When ctx ends it is killed with its process group.
func (l *Lab) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	return l.procs.Command(ctx, argv...)
}

// Environ is what programs in a node see, nil for a node that the lab does not have.
func (l *Lab) Environ(node string) []string {
	n := l.plan.Node(node)
	if n == nil {
		return nil
	}
	return l.procs.Environ(n)
}

// Stays is an [processes.Ended] if something that the action started is gone already.
func (l *Lab) Stays(ctx context.Context, a file.Action) error { return l.procs.Stays(ctx, a) }

// Output runs a command in a node to its end and returns what it printed, on both its outputs.
func (l *Lab) Output(ctx context.Context, node string, argv ...string) ([]byte, error) {
	n, err := l.node(node)
	if err != nil {
		return nil, err
	}
	cmd, err := l.programs.Command(ctx, n, argv)
	if err != nil {
		return nil, err
	}
	cmd.WaitDelay = time.Second
	return l.procs.Output(n, cmd)
}
