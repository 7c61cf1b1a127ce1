package hostd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/priority"
	"scaffold.dev/scaffold/sid"
)

// A check that fails is tried again soon, since a starting program wants its traffic; one that passes is
// repeated to notice when it does no longer.
const (
	checkLimit = 2 * time.Second
	checkFirst = 10 * time.Millisecond
	checkLast  = 500 * time.Millisecond
	checkAgain = time.Second
)

// A check is the ready check of an instance in one namespace.
type check struct {
	cancel context.CancelFunc
	reason string // why it fails
}

// startChecks runs the ready checks that the service's policy wants, where they do not run already: one in each
// namespace that serves the triple.
func (r *registry) startChecks(t sid.Triple, i *instance, guests []uint16) {
	p := r.policies[t.Service]
	if p == nil {
		return
	}
	spec := p.Policy.Ready
	if t.Proto != sid.TCP && !strings.HasPrefix(spec, "exec:") {
		spec = "" // a datagram socket has nothing to connect to
	}
	if i.spec != spec {
		i.cancelChecks()
	}
	i.spec = spec
	for guest, c := range i.checks {
		if !slices.Contains(guests, guest) {
			c.cancel()
			delete(i.checks, guest)
		}
	}
	for _, guest := range guests {
		if spec != "" && i.checks[guest] == nil {
			r.startCheck(t, i, guest)
		}
	}
	r.judge(i)
}

func (r *registry) startCheck(t sid.Triple, i *instance, guest uint16) {
	from, in := r.d.guests.at(guest)
	ctx, cancel := context.WithCancel(r.d.ctx)
	k := &check{cancel: cancel}
	if !i.trusted {
		k.reason = "ready check has not passed yet"
	}
	if i.checks == nil {
		i.checks = map[uint16]*check{}
	}
	i.checks[guest] = k
	c := readyCheck{spec: i.spec, to: netip.AddrPortFrom(r.d.home.Space.ServiceAddr(t.Service), t.Port), from: from, in: in}
	go c.repeat(ctx, func(reason string) {
		r.d.post(func() {
			if r.instances[t] == i && i.checks[guest] == k && ctx.Err() == nil && k.reason != reason {
				k.reason = reason
				r.share(t)
			}
		})
	})
}

// judge makes one answer of the checks: it is enough that one namespace is ready.
func (r *registry) judge(i *instance) {
	why := ""
	for _, c := range i.checks {
		if c.reason == "" {
			why = ""
			break
		}
		why = max(why, c.reason) // any, but the same each time
	}
	if why != i.check {
		i.check, r.dirty = why, true
	}
}

func (i *instance) cancelChecks() {
	for _, c := range i.checks {
		c.cancel()
	}
	i.checks = nil
}

// A readyCheck asks one program of this host whether it serves. It holds no state of the loop.
type readyCheck struct {
	spec string
	to   netip.AddrPort // service address and port
	from netip.Addr     // the host's or guest's identity: the answer finds its way back inside
	in   namespace      // where the program is
}

// repeat runs the check until ctx ends and tells each result: "" or why not.
func (c readyCheck) repeat(ctx context.Context, tell func(reason string)) {
	wait := checkFirst
	for ctx.Err() == nil {
		err := c.run(ctx)
		if err == nil {
			tell("")
			wait = checkFirst
		} else {
			tell("ready check: " + err.Error())
		}
		next := checkAgain
		if err != nil {
			next, wait = wait, min(2*wait, checkLast)
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

// run is one try; a check that hangs ends at checkLimit.
func (c readyCheck) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	kind, arg, _ := strings.Cut(c.spec, ":")
	switch kind {
	case "tcp":
		conn, err := c.dial(ctx, "tcp6", "")
		if err != nil {
			return tersely(err)
		}
		return conn.Close()
	case "http":
		return c.http(ctx, arg)
	case "exec":
		return c.exec(ctx, arg)
	}
	return fmt.Errorf("%q is no check that this host knows: want tcp, http:/path or exec:command", c.spec)
}

// tersely leaves out addresses that change with every try: a reason that stays the same is told once.
func tersely(err error) error {
	if e, ok := err.(*net.OpError); ok {
		return e.Err
	}
	return err
}

// dial connects inside the host: the mark chooses the table in which service addresses are local.
func (c readyCheck) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d := net.Dialer{
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 0)),
		Control: func(_, _ string, raw syscall.RawConn) (err error) {
			raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, LocalMark) })
			return err
		},
	}
	var conn net.Conn
	err := c.in.do(func() (err error) {
		conn, err = d.DialContext(ctx, "tcp6", c.to.String())
		return err
	})
	return conn, err
}

func (c readyCheck) http(ctx context.Context, path string) error {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	transport := &http.Transport{DialContext: c.dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.to.String()+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "scaffold-ready")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return tersely(err)
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, 1<<16)
	if resp.StatusCode >= 400 {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return nil
}

// exec runs a shell command; its whole process group dies with the time limit.
func (c readyCheck) exec(ctx context.Context, command string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), "SCAFFOLD_ADDRESS="+c.to.Addr().String(), fmt.Sprintf("SCAFFOLD_PORT=%d", c.to.Port()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := c.in.do(cmd.Start)
	if err == nil {
		_ = priority.Ordinary(cmd.Process.Pid) // it may have ended
		err = cmd.Wait()
	}
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: no end in %v", command, checkLimit)
		}
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
