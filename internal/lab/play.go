package lab

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
	"scaffold.dev/scaffold/internal/lab/timeline"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// Play goes through the timeline of a lab that is up and takes its measurements, as Run does, and leaves the lab
// up. Others cannot take it down meanwhile. With an error the result holds what there was until then.
func (l *Lab) Play(ctx context.Context) (*timeline.Result, error) {
	release, err := l.dir.Acquire()
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := l.dir.Read()
	if err != nil {
		return nil, err
	}
	if s == nil { // it went before we had the lock
		return nil, fmt.Errorf("lab %s: %w", l.File.Name, ErrNone)
	}
	return l.play(ctx)
}

// play is Play of a lab whose lock this process holds.
func (l *Lab) play(ctx context.Context) (*timeline.Result, error) {
	r, err := timeline.Play(ctx, l.File, played{l}, l.opt.logf)
	if err == nil { // of half a run a certificate would say nothing
		r.Certificate = l.engine.OfRun(ctx)
	}
	return r, err
}

// Run brings a lab up, goes through its timeline, takes its measurements and takes it down, whatever
// happens; the result holds what there was until then. The lab cannot be taken down by others
// meanwhile, and goes when this process dies and the next lab command finds it.
func Run(ctx context.Context, f *file.File, opt Options) (result *timeline.Result, err error) {
	l, err := up(ctx, f, opt, state.Running)
	if err != nil {
		return nil, err
	}
	defer func() {
		opt.logf("lab %s: down", f.Name)
		err = errors.Join(err, l.remove())
	}()
	if result, err = l.play(ctx); err != nil {
		err = l.explain(ctx, err)
	}
	return result, err
}

// A played lab is the network that a timeline happens to.
type played struct{ *Lab }

// Begin starts a command of the file in a node.
func (l played) Begin(ctx context.Context, node string, argv []string) (*timeline.Command, error) {
	n := l.plan.Node(node)
	cmd, err := l.programs.Command(ctx, n, argv)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.procs.Start(n, file.ExecGroup, cmd); err != nil {
		return nil, err
	}
	return &timeline.Command{Out: out, End: func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		cmd.Wait()                                      //nolint:errcheck // we ended it
	}}, nil
}

// Counter counts at the interfaces of a node, or asks the engine where it has none.
func (l played) Counter(node, peer string) timeline.Counter {
	n := l.plan.Node(node)
	if !n.Kind.IsNamespace() {
		return engineCounter{l.engine, node, peer}
	}
	return wireCounter{wires.New(), n, peer}
}

type wireCounter struct {
	*wires.Wirer
	node *plan.Node
	peer string
}

func (c wireCounter) Bytes() (received, sent uint64, err error) {
	for _, p := range c.node.Ports {
		if p.Far.Name != c.peer {
			continue
		}
		in, out, err := c.Wirer.Bytes(c.node.Netns, p.Dev)
		if err != nil {
			return 0, 0, err
		}
		received, sent = received+in, sent+out
	}
	return received, sent, nil
}

type engineCounter struct {
	engine     *engine.Engine
	node, peer string
}

func (c engineCounter) Bytes() (received, sent uint64, err error) {
	links, err := c.engine.Links()
	if err != nil {
		return 0, 0, err
	}
	for _, link := range links.Between(c.node, c.peer) {
		to, from := 0, 1
		if link.Ends[1] == c.node {
			to, from = 1, 0
		}
		sent += link.Lines[to].Counters.PassedByte
		received += link.Lines[from].Counters.PassedByte
	}
	return received, sent, nil
}

func (c engineCounter) Close() {}
