package labapi

import (
	"cmp"
	"context"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// A command runs in a node as the leader of its process group.
type command struct{ lab, node string }

// begin notes a command that runs; the function that it returns notes its end.
func (s *Server) begin(c command, cmd *exec.Cmd) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := cmd.Process.Pid
	s.running[pid] = c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, pid)
	}
}

// Signal reaches a command that a call has started and still waits for, with all its children that did not leave its group.
func (s calls) Signal(_ context.Context, q *labv1.SignalRequest) (*labv1.Signalled, error) {
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(cmp.Or(q.Signal, "KILL")), "SIG")
	number := unix.SignalNum(name)
	if number == 0 {
		return nil, bad("signal %q: expected a name such as TERM or KILL", q.Signal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.running[int(q.Pid)]; !ok || c != (command{q.Lab, q.Node}) {
		return nil, notFound("lab %s, node %s: no command with the pid %d runs there that a call has started", q.Lab, q.Node, q.Pid)
	}
	if err := syscall.Kill(-int(q.Pid), number); err != nil {
		return nil, notFound("process group %d: %w", q.Pid, err)
	}
	return &labv1.Signalled{Pid: q.Pid, Signal: name}, nil
}
