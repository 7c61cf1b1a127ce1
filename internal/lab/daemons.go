package lab

import (
	"context"
	"os/exec"

	"scaffold.dev/scaffold/internal/lab/daemons"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// startDaemons starts the controller first: the others ask for it at once.
func (l *Lab) startDaemons(ctx context.Context) error {
	for _, kind := range []file.Kind{file.Controller, file.Switch, file.Router, file.Host, file.Agent} {
		for _, n := range l.plan.Nodes {
			if n.Kind != kind || n.Daemon() == "" {
				continue
			}
			if err := l.startDaemon(ctx, n); err != nil {
				return err
			}
		}
		if kind == file.Controller {
			if err := l.control.Admit(ctx); err != nil {
				return err
			}
		}
	}
	return l.routing.StartAll(ctx)
}

func (l *Lab) startDaemon(ctx context.Context, n *plan.Node) error {
	if n.Kind == file.Switch {
		return l.switches.Start(ctx, n)
	}
	argv := l.opt.stub
	if argv == nil {
		argv = daemons.Argv(l.plan, l.dir, l.opt.Binary, n)
	}
	return l.procs.Spawn(n, n.Daemon(), exec.Command(argv[0], argv[1:]...))
}

// startAgents starts what carries connections, once its hosts have addresses, and waits until it does what the file says.
func (l *Lab) startAgents(ctx context.Context) error {
	for _, n := range l.plan.Nodes {
		if n.Kind != file.Agent {
			continue
		}
		if err := l.startAgent(ctx, n); err != nil {
			return err
		}
	}
	return l.control.Boost(ctx)
}

func (l *Lab) startAgent(ctx context.Context, n *plan.Node) error {
	if l.opt.stub != nil {
		return l.procs.Spawn(n, file.Boostd, exec.Command(l.opt.stub[0], l.opt.stub[1:]...))
	}
	door, err := l.control.HostAddr(ctx, n.Name)
	if err != nil {
		return err
	}
	argv, err := daemons.Agent(l.plan, l.dir, l.opt.Binary, n, door)
	if err != nil {
		return err
	}
	return l.procs.Spawn(n, file.Boostd, exec.Command(argv[0], argv[1:]...))
}

// daemonsAlive is an error as soon as a daemon has ended.
func (l *Lab) daemonsAlive() error {
	if err := l.procs.Exited(file.ManagementNode, engine.Name); err != nil {
		return poll.Final(err)
	}
	for _, n := range l.plan.Nodes {
		if name := n.Daemon(); name != "" {
			if err := l.procs.Exited(n.Name, name); err != nil {
				return poll.Final(err)
			}
		}
	}
	return nil
}
