package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Do carries out one action. It returns when the action is done, not when the network has taken
// notice; a command of exec has ended then.
func (l *Lab) Do(ctx context.Context, a Action) error {
	if err := l.File.CheckAction(a); err != nil {
		return err
	}
	n := l.plan.Node(a.Node) // nil where the action is about no single node
	if n != nil {
		a.Program = n.meant(a.Program)
	}
	if err := l.do(ctx, n, a); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return nil
}

func (l *Lab) do(ctx context.Context, n *PlanNode, a Action) error {
	switch a.Verb {
	case "start":
		return l.startAny(ctx, n, a.Program)
	case "kill":
		return l.signal(ctx, n, a.Program, a.Signal)
	case "stop":
		return l.signal(ctx, n, a.Program, syscall.SIGSTOP)
	case "cont":
		return l.signal(ctx, n, a.Program, syscall.SIGCONT)
	case "restart":
		if a.Program == "" {
			a.Program = n.daemon()
		}
		if n.runsFRR(a.Program) {
			return l.restartFRR(ctx, n)
		}
		if err := l.end(ctx, n.Name, a.Program); err != nil {
			return err
		}
		return l.startAny(ctx, n, a.Program)
	case "cut", "unplug", "remove", "heal":
		return l.disturb(ctx, n, a)
	case "fail", "repair", "partition", "unite", "flap", "upgrade":
		return l.fault(ctx, a)
	case "move":
		return l.move(ctx, n, a)
	case "link":
		return l.setLink(ctx, a)
	case "exec":
		return l.run(ctx, n, a.Argv)
	}
	return l.steer(ctx, a)
}

// startAny starts one program or daemon, or, with no name, the daemon and all programs that are not
// running.
func (l *Lab) startAny(ctx context.Context, n *PlanNode, name string) error {
	switch {
	case name == "":
		return l.startNode(ctx, n)
	case n.runsFRR(name):
		return l.startRouting(ctx, n)
	case name != n.daemon() && (n.Kind != Switch || name != ovsdb):
		return l.startProgram(ctx, n, n.Program(name))
	case l.running(n.Name, name):
		return fmt.Errorf("%s/%s runs already", n.Name, name)
	}
	return l.startDaemon(ctx, n)
}

func (l *Lab) startNode(ctx context.Context, n *PlanNode) error {
	if d := n.daemon(); d != "" && !l.running(n.Name, d) {
		if err := l.startDaemon(ctx, n); err != nil {
			return err
		}
	}
	for _, p := range n.Programs {
		if p.Manual || l.running(n.Name, p.Name) {
			continue
		}
		if err := l.startProgram(ctx, n, p); err != nil {
			return err
		}
	}
	return nil
}

// signal reaches every process of a program, or of a node. A SIGKILL is waited for: afterwards all
// are gone.
func (l *Lab) signal(ctx context.Context, n *PlanNode, program string, s syscall.Signal) error {
	c := l.cgroup(n.Name)
	if program != "" {
		c = c.child(program)
	}
	switch {
	case len(c.pids()) == 0:
		return fmt.Errorf("nothing runs there")
	case s == syscall.SIGKILL:
		return c.kill(ctx)
	}
	return c.signal(s)
}

// disturb cuts, unplugs, removes or heals the links of a node, or those to one neighbour, at both ends. A link with
// an end in the engine is broken there, and its carrier at the other end.
func (l *Lab) disturb(ctx context.Context, n *PlanNode, a Action) error {
	w := newWirer()
	defer w.close()
	for _, near := range n.Ports {
		if a.Peer != "" && a.Peer != near.Far.Name {
			continue
		}
		if err := l.engineFault(ctx, near.Link, a.Verb); err != nil {
			return err
		}
		if a.Verb == "heal" {
			if err := l.restore(w, near.Link); err != nil {
				return err
			}
		}
		for i, end := range near.Link.Nodes {
			if !end.Kind.namespace() {
				continue
			}
			if err := l.disturbEnd(w, a.Verb, end.Netns, near.Link.Ports[i]); err != nil {
				return err
			}
			if err := l.repatch(end, near.Link.Ports[i], a.Verb); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) disturbEnd(w *wirer, verb, ns string, p *Port) error {
	switch {
	case verb == "cut" && p.Link.inEngine():
		return nil // the engine loses everything
	case verb == "cut":
		return w.cut(ns, p.Dev)
	case verb == "unplug", verb == "fail":
		return w.down(ns, p.Dev)
	case verb == "remove":
		return w.remove(ns, p)
	}
	if err := l.replug(w, ns, p); err != nil {
		return err
	}
	return w.shape(ns, p.Dev, p.Link.Rate)
}

// run runs a command in a node to its end; its output goes to the node's exec log.
func (l *Lab) run(ctx context.Context, n *PlanNode, argv []string) error {
	log, err := os.OpenFile(l.LogPath(n.Name, execGroup), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := l.command(ctx, n, argv)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := l.start(n, execGroup, cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// command prepares a command of the file, its variables replaced.
func (l *Lab) command(ctx context.Context, n *PlanNode, argv []string) (*exec.Cmd, error) {
	value, err := l.values(ctx, n, l.nodeDir(n), argv)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = substitute(word, value)
	}
	return l.Command(ctx, words...)
}

// steer asks the controller.
func (l *Lab) steer(ctx context.Context, a Action) error {
	admin, err := l.Admin()
	if err != nil {
		return err
	}
	if a.Verb == "weight" {
		_, err = admin.SetWeight(ctx, connect.NewRequest(&apiv1.SetWeightRequest{Name: a.Service, Host: a.Node, Weight: a.Weight}))
		return err
	}
	_, err = admin.Drain(ctx, connect.NewRequest(&apiv1.DrainRequest{Name: a.Service, Host: a.Node, Undrain: a.Verb == "undrain", Force: true, Mode: a.Mode}))
	return err
}
