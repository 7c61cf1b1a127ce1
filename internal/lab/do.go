package lab

import (
	"context"
	"fmt"
	"syscall"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// Do carries out one action. It returns when the action is done, not when the network has taken
// notice; a command of exec has ended then.
func (l *Lab) Do(ctx context.Context, a file.Action) error {
	if err := l.File.CheckAction(a); err != nil {
		return err
	}
	n := l.plan.Node(a.Node) // nil where the action is about no single node
	if n != nil {
		a.Program = n.Meant(a.Program)
	}
	if err := l.do(ctx, n, a); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return nil
}

func (l *Lab) do(ctx context.Context, n *plan.Node, a file.Action) error {
	switch a.Verb {
	case "start":
		return l.startAny(ctx, n, a.Program)
	case "kill":
		return l.procs.Signal(ctx, n.Name, a.Program, a.Signal)
	case "stop":
		return l.procs.Signal(ctx, n.Name, a.Program, syscall.SIGSTOP)
	case "cont":
		return l.procs.Signal(ctx, n.Name, a.Program, syscall.SIGCONT)
	case "restart":
		if a.Program == "" {
			a.Program = n.Daemon()
		}
		if n.RunsFRR(a.Program) {
			return l.routing.Restart(ctx, n)
		}
		if err := l.procs.Kill(ctx, n.Name, a.Program); err != nil {
			return err
		}
		return l.startAny(ctx, n, a.Program)
	case "cut", "unplug", "remove", "heal", "move", "fail", "repair", "partition", "unite", "flap":
		return l.links.Do(ctx, a)
	case "upgrade":
		return l.engine.Upgrade(ctx, a)
	case "link":
		return l.engine.SetLink(ctx, a)
	case "exec":
		cmd, err := l.programs.Command(ctx, n, a.Argv)
		if err != nil {
			return err
		}
		return l.procs.Run(n, cmd)
	}
	return l.control.Steer(ctx, a)
}

// startAny starts one program or daemon, or, with no name, the daemon and all programs that are not
// running.
func (l *Lab) startAny(ctx context.Context, n *plan.Node, name string) error {
	switch {
	case name == "":
		return l.startNode(ctx, n)
	case n.RunsFRR(name):
		return l.routing.Start(ctx, n)
	case name != n.Daemon() && name != n.Beside():
		return l.programs.Start(ctx, n, n.Program(name))
	case l.procs.Running(n.Name, name):
		return fmt.Errorf("%s/%s runs already", n.Name, name)
	case name == file.Boostd:
		return l.startAgent(ctx, n)
	}
	return l.startDaemon(ctx, n)
}

func (l *Lab) startNode(ctx context.Context, n *plan.Node) error {
	if d := n.Daemon(); d != "" && !l.procs.Running(n.Name, d) {
		if err := l.startDaemon(ctx, n); err != nil {
			return err
		}
	}
	if n.Kind == file.Agent && !l.procs.Running(n.Name, file.Boostd) {
		if err := l.startAgent(ctx, n); err != nil {
			return err
		}
	}
	for _, p := range n.Programs {
		if p.Manual || l.procs.Running(n.Name, p.Name) {
			continue
		}
		if err := l.programs.Start(ctx, n, p); err != nil {
			return err
		}
	}
	return nil
}
