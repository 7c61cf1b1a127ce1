package labapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/lab"
)

// An ExecRequest is a command to be run in a node.
type ExecRequest struct {
	Argv   []string          `json:"argv"`   // no shell is involved
	Stdin  string            `json:"stdin"`  // standard input
	Env    map[string]string `json:"env"`    // beside what the node's programs have
	Stream bool              `json:"stream"` // answer with lines as the command prints
}

// An Exit says how a command ended.
type Exit struct {
	Exit int     `json:"exit"`   // exit code; 128 and the number of the signal that killed it
	Took float64 `json:"took_s"` // seconds
}

// Began is the first line of a stream: the command runs.
type Began struct {
	PID int `json:"pid"` // also of its process group
}

// Executed is a command that ran. What is not UTF-8 in its output stands there as U+FFFD.
type Executed struct {
	Exit
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// maxOutput bounds each output that is kept for one answer; a stream has no bound.
const maxOutput = 64 << 20

// exec runs a command to its end, or to that of the request.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) (any, error) {
	var q ExecRequest
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	node := r.PathValue("node")
	if l.File.Node(node) == nil {
		return nil, notFound("lab %s has no node %q", l.File.Name, node)
	}
	if len(q.Argv) == 0 || q.Argv[0] == "" {
		return nil, bad("no command: expected its words as \"argv\", a list")
	}
	s.cfg.Log("lab %s: exec %s: %s", l.File.Name, node, strings.Join(q.Argv, " "))
	if q.Stream {
		return s.streamed(r.Context(), q, l, node, w)
	}
	return s.kept(r.Context(), q, l, node)
}

func (s *Server) kept(ctx context.Context, q ExecRequest, l *lab.Lab, node string) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, errs := &bounded{full: cancel}, &bounded{full: cancel}
	exit, err := s.execute(ctx, q, l, node, out, errs, func(int) {})
	switch {
	case out.over || errs.over:
		return nil, refuse(http.StatusInsufficientStorage, "%s printed more than %d bytes and was killed: ask for a stream (\"stream\": true), or let it write to a file", q.Argv[0], maxOutput)
	case err != nil:
		return nil, err
	}
	return Executed{exit, valid(out.kept.String()), valid(errs.kept.String())}, nil
}

func (s *Server) streamed(ctx context.Context, q ExecRequest, l *lab.Lab, node string, w http.ResponseWriter) (any, error) {
	lines, running := newStream(w), make(chan struct{})
	writer := func(name string) *textWriter {
		return &textWriter{send: func(text string) {
			<-running // the pid comes first
			lines.line(map[string]string{name: text})
		}}
	}
	out, errs := writer("stdout"), writer("stderr")
	exit, err := s.execute(ctx, q, l, node, out, errs, func(pid int) {
		lines.line(Began{pid})
		close(running)
	})
	out.end()
	errs.end()
	return lines.end(exit, err)
}

// execute tells the pid by began as soon as there is one.
func (s *Server) execute(ctx context.Context, q ExecRequest, l *lab.Lab, node string, out, errs io.Writer, began func(pid int)) (e Exit, err error) {
	cmd, err := l.Command(ctx, q.Argv...)
	if err != nil {
		return e, err
	}
	q.prepare(cmd, l.Environ(node))
	cmd.Stdout, cmd.Stderr = out, errs
	start := time.Now()
	if err := l.Start(node, cmd); err != nil {
		return e, bad("%w", err)
	}
	end := s.begin(command{l.File.Name, node}, cmd)
	began(cmd.Process.Pid)
	err = cmd.Wait()
	end()
	e.Exit, e.Took = exitCode(cmd), time.Since(start).Seconds()
	var status *exec.ExitError
	if errors.As(err, &status) || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return e, err
}

func (q ExecRequest) prepare(cmd *exec.Cmd, env []string) {
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
