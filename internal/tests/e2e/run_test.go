package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestRunServesByAnUnmodifiedSSHD(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("shell")
	p := n.sshd("s1", 22, self, "run", "--service", "shell", "--")
	n.serving("shell", "tcp", 22, 1)
	out, err := n.run("c1", "ssh-keyscan", "-T", "20", "-t", "ed25519", "shell.svc")
	if err != nil || !strings.Contains(out, "shell.svc ssh-ed25519 ") {
		t.Errorf("ssh-keyscan shell.svc: %v\n%s\nlook at: %s", err, out, n.look())
	}
	own := netip.AddrPortFrom(n.locator("s1").Host(), 22)
	if err := only(n.connects("c1", own, 1), unix.ECONNREFUSED); err != nil {
		t.Errorf("the host's own address: %v; under run the server listens for the service alone", err)
	}
	p.Signal(syscall.SIGTERM)
	nstest.Receive(t, "the processes of "+n.lab.Cgroup("s1", ""), closedAs(p))
	n.serving("shell", "tcp", 22, 0)
	if err := only(n.connects("c1", netip.AddrPortFrom(addr, 22), 1), unix.EHOSTUNREACH); err != nil {
		t.Errorf("after the end of the server: %v", err)
	}
}

// closedAs turns the end of a program into something that can be received.
func closedAs(p *nstest.Proc) <-chan struct{} {
	c := make(chan struct{}, 1)
	go func() { <-p.Done(); c <- struct{}{} }()
	return c
}

// daemonizing is a server that forks and whose first process ends with code 0, as many daemons do.
const daemonizing = `
import os, socket
l = socket.create_server(("::", 80), family=socket.AF_INET6)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while True:
    c, _ = l.accept()
    c.sendall(b"the grandchild\n")
    c.close()
`

func TestRunServesWhileADaemonLives(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("daemon")
	p := n.start("s1", self, "run", "--service", "daemon", "--", "python3", "-c", daemonizing)
	n.serving("daemon", "tcp", 80, 1)
	c := n.dial("c1", "tcp6", port(addr, 80))
	buf := make([]byte, 64)
	if size, err := c.Read(buf); err != nil || string(buf[:size]) != "the grandchild\n" {
		t.Fatalf("the daemon answers %q, %v; `scaffold run` printed %q", buf[:size], err, p.Output())
	}
	p.Signal(syscall.SIGTERM)
	nstest.Receive(t, "the processes of "+n.lab.Cgroup("s1", ""), closedAs(p))
	n.serving("daemon", "tcp", 80, 0) // nothing of it is left
}

func TestRunEndsAsItsProgram(t *testing.T) {
	n := theNetwork(t)
	n.create("codes")
	for script, want := range map[string]int{"exit 0": 0, "exit 42": 42, "kill -9 $$": 128 + 9, "kill -TERM $$": 128 + 15} {
		out, err := n.run("s1", self, "run", "--service", "codes", "--", "sh", "-c", script)
		if got := exitCode(err); got != want {
			t.Errorf("run sh -c %q: exit code %d (%v), want %d\n%s", script, got, err, want, out)
		}
	}
	for _, c := range []struct {
		argv []string
		want int
		says string
	}{
		{[]string{"--service", "nosuch", "--", "true"}, 3, "nosuch"},
		{[]string{"--service", "codes", "--", "/no/such/program"}, 3, "/no/such/program"},
		{[]string{"--service", "codes", "--socket", "/no/such/socket", "--", "true"}, 5, "/no/such/socket"},
	} {
		out, err := n.run("s1", append([]string{self, "run"}, c.argv...)...)
		if got := exitCode(err); got != c.want || !strings.Contains(out, c.says) {
			t.Errorf("run %q: exit code %d, want %d, and %q in its output:\n%s", c.argv, got, c.want, c.says, out)
		}
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	n := theNetwork(t)
	n.create("signals")
	for number, name := range map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGUSR1: "USR1", syscall.SIGINT: "INT"} {
		script := fmt.Sprintf(`trap 'echo got %s; exit 9' %s; echo ready; while :; do sleep 0.02; done`, name, name)
		p := n.start("s1", self, "run", "--service", "signals", "--", "sh", "-c", script)
		p.WaitFor(t, "ready")
		p.Signal(number)
		nstest.Receive(t, "the output: "+p.Output(), closedAs(p))
		if err := p.Wait(); exitCode(err) != 9 || !strings.Contains(p.Output(), "got "+name) {
			t.Errorf("%s: %v, want exit code 9; it printed:\n%s", name, err, p.Output())
		}
	}
}
