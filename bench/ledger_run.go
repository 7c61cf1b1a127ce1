package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// A Program is a checked program that runs on a node and writes into a ledger.
type Program struct {
	Node string
	cmd  *exec.Cmd
	hold io.Closer // standard input: a client ends its flows in peace when it is closed
	done chan error
}

// Start starts a checked program; args are those of `scaffold-bench agent`.
func (l *Ledger) Start(r *Rig, node string, args ...string) (*Program, error) {
	cmd, err := AgentCommand(append(args, "--id", node)...)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.Start(node, cmd); err != nil {
		return nil, fmt.Errorf("start %v on %s: %w", args, node, err)
	}
	p := &Program{Node: node, cmd: cmd, hold: in, done: make(chan error, 1)}
	go func() { // ends with the program
		err := l.Read(out)
		cmd.Wait() //nolint:errcheck // how it ended is in the ledger
		p.done <- err
	}()
	return p, nil
}

// startTime bounds how long a program may take until it listens.
const startTime = 20 * time.Second

// Serve starts a checked server and waits until it listens; args are more flags for it.
func (l *Ledger) Serve(ctx context.Context, r *Rig, node, addr string, gap time.Duration, args ...string) (*Program, error) {
	began := agent.Now()
	p, err := l.Start(r, node, append([]string{"checked-serve", "--listen", addr, "--gap", gap.String()}, args...)...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := l.Await(ctx, func() error { return l.listening(node, began) }); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Signal sends it a signal.
func (p *Program) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends it with SIGKILL and waits for it.
func (p *Program) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.wait(startTime)
}

// Finish lets a client end its flows in peace and waits for it.
func (p *Program) Finish(limit time.Duration) error {
	if err := p.hold.Close(); err != nil {
		return err
	}
	return p.wait(limit)
}

func (p *Program) wait(limit time.Duration) error {
	select {
	case err := <-p.done:
		return err
	case <-time.After(limit):
		p.cmd.Process.Kill() // it may end just now
		return fmt.Errorf("the program on %s did not end in %v", p.Node, limit)
	}
}
