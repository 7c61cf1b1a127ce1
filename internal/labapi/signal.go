package labapi

import (
	"net/http"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A SignalRequest is a signal for a command that a request of exec has started and still waits for.
type SignalRequest struct {
	PID    int    `json:"pid"`    // as the first line of the stream has it
	Signal string `json:"signal"` // "TERM", "INT" and so on; "" for KILL
}

// Signalled says what was sent.
type Signalled struct {
	PID    int    `json:"pid"`
	Signal string `json:"signal"` // "SIGTERM" and so on
}

// A command runs in a node as the leader of its process group.
type command struct{ lab, node string }

// begin notes a command that runs; the function that it returns notes its end.
func (s *Server) begin(c command, cmd *exec.Cmd) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := cmd.Process.Pid
	s.commands[pid] = c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.commands, pid)
	}
}

// signal reaches the command with all its children that did not leave its group.
func (s *Server) signal(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := SignalRequest{Signal: "KILL"}
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(q.Signal), "SIG")
	number := unix.SignalNum(name)
	if number == 0 {
		return nil, bad("signal %q: expected a name such as TERM or KILL", q.Signal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.commands[q.PID]; !ok || c.lab != r.PathValue("lab") || c.node != r.PathValue("node") {
		return nil, notFound("lab %s, node %s: no command with the pid %d runs there that a request has started", r.PathValue("lab"), r.PathValue("node"), q.PID)
	}
	if err := syscall.Kill(-q.PID, number); err != nil {
		return nil, notFound("process group %d: %w", q.PID, err)
	}
	return Signalled{q.PID, name}, nil
}
