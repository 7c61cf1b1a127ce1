package labapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/lab"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// maxOutput bounds each output that is kept for one answer; a stream has no bound.
const maxOutput = 64 << 20

// node is the lab whose node a command is for.
func (s calls) node(q *labv1.ExecRequest) (*lab.Lab, error) {
	l, err := s.open(q.Lab)
	switch {
	case err != nil:
		return nil, err
	case l.File.Node(q.Node) == nil:
		return nil, notFound("lab %s has no node %q", l.File.Name, q.Node)
	case len(q.Argv) == 0 || q.Argv[0] == "":
		return nil, bad("no command: expected its words as \"argv\", a list")
	}
	s.cfg.Log("lab %s: exec %s: %s", l.File.Name, q.Node, strings.Join(q.Argv, " "))
	return l, nil
}

// Exec runs a command to its end, or to that of the call.
func (s calls) Exec(ctx context.Context, q *labv1.ExecRequest) (*labv1.Executed, error) {
	l, err := s.node(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, errs := &bounded{full: cancel}, &bounded{full: cancel}
	ended, err := s.execute(ctx, q, l, out, errs, func(int) {})
	switch {
	case out.over || errs.over:
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%s printed more than %d bytes and was killed: use Start, which has no bound, or let it write to a file", q.Argv[0], maxOutput))
	case err != nil:
		return nil, err
	}
	return &labv1.Executed{Exit: ended.Exit, TookS: ended.TookS, Stdout: valid(out.kept.String()), Stderr: valid(errs.kept.String())}, nil
}

// Start tells what a command prints as it does.
func (s calls) Start(ctx context.Context, q *labv1.ExecRequest, stream *connect.ServerStream[labv1.ProcessEvent]) error {
	l, err := s.node(q)
	if err != nil {
		return err
	}
	told, running := &events[labv1.ProcessEvent]{out: stream}, make(chan struct{})
	text := func(send func(text string)) *textWriter {
		return &textWriter{send: func(text string) {
			<-running // the pid comes first
			send(text)
		}}
	}
	out := text(func(s string) { told.send(&labv1.ProcessEvent{Event: &labv1.ProcessEvent_Stdout{Stdout: s}}) })
	errs := text(func(s string) { told.send(&labv1.ProcessEvent{Event: &labv1.ProcessEvent_Stderr{Stderr: s}}) })
	ended, err := s.execute(ctx, q, l, out, errs, func(pid int) {
		told.send(&labv1.ProcessEvent{Event: &labv1.ProcessEvent_Pid{Pid: int32(pid)}})
		close(running)
	})
	out.end()
	errs.end()
	if err != nil {
		return err
	}
	told.send(&labv1.ProcessEvent{Event: &labv1.ProcessEvent_Ended{Ended: ended}})
	return nil
}

// execute tells the pid by began as soon as there is one.
func (s calls) execute(ctx context.Context, q *labv1.ExecRequest, l *lab.Lab, out, errs io.Writer, began func(pid int)) (*labv1.Ended, error) {
	cmd, err := l.Command(ctx, q.Argv...)
	if err != nil {
		return nil, err
	}
	prepare(cmd, q, l.Environ(q.Node))
	cmd.Stdout, cmd.Stderr = out, errs
	start := time.Now()
	if err := l.Start(q.Node, cmd); err != nil {
		return nil, bad("%w", err)
	}
	end := s.begin(command{l.File.Name, q.Node}, cmd)
	began(cmd.Process.Pid)
	err = cmd.Wait()
	end()
	var status *exec.ExitError
	if errors.As(err, &status) || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return &labv1.Ended{Exit: int32(exitCode(cmd)), TookS: time.Since(start).Seconds()}, err
}

func prepare(cmd *exec.Cmd, q *labv1.ExecRequest, env []string) {
	cmd.WaitDelay = time.Second // what it left behind may hold the pipes
	cmd.Env = env
	for key, value := range q.Env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	if q.Stdin != "" {
		cmd.Stdin = strings.NewReader(q.Stdin)
	}
}

// exitCode is what a shell makes of how a command ended.
func exitCode(cmd *exec.Cmd) int {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
