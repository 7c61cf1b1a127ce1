package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/bench/agent"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/rig"
)

// A Rig is a lab that is up with what benchmarks ask of it.
type Rig struct{ *rig.Rig }

// NewRig takes a lab that is up.
func NewRig(l *lab.Lab) (*Rig, error) {
	r, err := rig.New(l)
	return &Rig{r}, err
}

// FreePorts lets a node use a client port again one second after its connection ended, not sixty: else
// a client that opens thousands of connections a second runs out of them and measures that.
func (r *Rig) FreePorts(ctx context.Context, node string) error {
	out, err := r.Output(ctx, node, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse && echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return fmt.Errorf("free client ports on %s: %w: %s", node, err, out)
	}
	return nil
}

// Host asks the controller for a host.
func (r *Rig) Host(ctx context.Context, name string) (*apiv1.Host, error) {
	res, err := r.Client.GetHost(ctx, connect.NewRequest(&apiv1.GetHostRequest{Name: name}))
	if err != nil {
		return nil, fmt.Errorf("ask for host %s: %w", name, err)
	}
	return res.Msg, nil
}

// port is where the load agents listen.
const port = 7

// target is addr with the agents' port, as package net writes it.
func target(addr netip.Addr) string { return netip.AddrPortFrom(addr, port).String() }

// serviceTarget is where the service is asked.
func serviceTarget(ctx context.Context, r *Rig, name string) (string, error) {
	s, err := r.Service(ctx, name)
	if err != nil {
		return "", err
	}
	addr, err := netip.ParseAddr(s.Address)
	return target(addr), err
}

// plainTarget is the host's own address, which Scaffold leaves alone: the peer on the same path.
func plainTarget(ctx context.Context, r *Rig, host string) (string, error) {
	h, err := r.Host(ctx, host)
	if err != nil {
		return "", err
	}
	prefix, err := netip.ParsePrefix(h.Locator)
	if err != nil {
		return "", fmt.Errorf("locator of %s: %w", host, err)
	}
	return target(prefix.Addr().Next()), nil
}

// A Server is a load agent that serves on a node.
type Server struct {
	Node      string
	Listening int64 // agent.Now at which listen() had returned
	cmd       *exec.Cmd
}

// serve starts a serving agent and waits until it listens; args are more flags for it.
func serve(r *Rig, node, addr string, args ...string) (*Server, error) {
	cmd, err := AgentCommand(append([]string{"serve", "--listen", addr, "--id", node}, args...)...)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.Start(node, cmd); err != nil {
		return nil, fmt.Errorf("start a server on %s: %w", node, err)
	}
	s := &Server{Node: node, cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		s.Listening, err = strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(line, "listening ")), 10, 64)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server on %s said %q instead of listening on %s", node, line, addr), s.Kill())
	}
	return s, nil
}

// Kill ends the server with SIGKILL and waits for it.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	s.cmd.Wait() //nolint:errcheck // killed
	return nil
}

// AgentCommand makes a command that runs this binary as a load agent.
func AgentCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"agent"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// measure runs a client agent on node to its end.
func measure(ctx context.Context, r *Rig, node string, args ...string) (agent.Result, error) {
	var res agent.Result
	cmd, err := AgentCommand(args...)
	if err != nil {
		return res, err
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := r.Start(node, cmd); err != nil {
		return res, err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return res, errors.Join(ctx.Err(), fmt.Errorf("agent %v on %s: %w", args, node, err))
	}
	return res, json.Unmarshal(out.Bytes(), &res)
}

// A watch is a client that asks again and again and tells of each request.
type watch struct {
	cmds     []*exec.Cmd
	requests chan agent.Request
}

// startWatch starts n clients on node that ask target until stop.
func startWatch(r *Rig, node, network, to string, n int) (*watch, error) {
	w := &watch{requests: make(chan agent.Request, 1<<16)}
	for range n {
		cmd, err := AgentCommand("connect", "--each", "--network", network, "--to", to)
		if err != nil {
			return nil, errors.Join(err, w.stop())
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := r.Start(node, cmd); err != nil {
			return nil, errors.Join(err, w.stop())
		}
		w.cmds = append(w.cmds, cmd)
		go w.read(out) // ends with the client
	}
	return w, nil
}

func (w *watch) read(out io.Reader) {
	dec := json.NewDecoder(out)
	for {
		var q agent.Request
		if dec.Decode(&q) != nil {
			return
		}
		w.requests <- q
	}
}

func (w *watch) stop() error {
	for _, cmd := range w.cmds {
		cmd.Process.Kill() // it may have ended
		cmd.Wait()         //nolint:errcheck // killed
	}
	return nil
}

// until reads requests until fits says true; it gives up after limit.
func (w *watch) until(limit time.Duration, fits func(agent.Request) bool) bool {
	timeout := time.After(limit)
	for {
		select {
		case q := <-w.requests:
			if fits(q) {
				return true
			}
		case <-timeout:
			return false
		}
	}
}

// pass lets d of requests go by, telling each.
func (w *watch) pass(d time.Duration, each func(agent.Request)) {
	w.until(d, func(q agent.Request) bool { each(q); return false })
}

// Target is where the agents ask a service, as package net writes it.
func (r *Rig) Target(ctx context.Context, service string) (string, error) {
	return serviceTarget(ctx, r, service)
}

// TargetPort is Target with another port.
func (r *Rig) TargetPort(ctx context.Context, service string, port int) (string, error) {
	s, err := r.Service(ctx, service)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(s.Address, strconv.Itoa(port)), nil
}

// AwaitServing waits until the controller counts n serving instances, per protocol and port.
func (r *Rig) AwaitServing(ctx context.Context, service string, n int) error {
	return awaitServing(ctx, r, service, n)
}
