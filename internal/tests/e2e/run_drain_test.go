package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// echoing is a server that answers each connection for as long as it lasts, and ends with code 9 when it is
// asked to.
const echoing = `
import os, signal, socket, threading
signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
def serve(c):
    while b := c.recv(4096):
        c.sendall(b)
    c.close()
l = socket.create_server(("::", 80), family=socket.AF_INET6)
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,)).start()
`

// runDraining starts the server and connects to it.
func (n *network) runDraining(name, mode string) (*nstest.Proc, net.Conn, netip.Addr) {
	n.t.Helper()
	addr := n.create(name)
	p := n.start("s1", self, "run", "--service", name, "--drain", mode, "--", "python3", "-c", echoing)
	n.serving(name, "tcp", 80, 1)
	c := n.dial("c1", "tcp6", port(addr, 80))
	if err := echo(c); err != nil {
		n.t.Fatal(err)
	}
	return p, c, addr
}

func echo(c net.Conn) error {
	b := make([]byte, 4)
	if _, err := c.Write([]byte("ping")); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
		return fmt.Errorf("the echo is %q: %w", b, err)
	}
	return nil
}

func (n *network) ends(p *nstest.Proc, code int) {
	n.t.Helper()
	nstest.Receive(n.t, "the output: "+p.Output(), closedAs(p))
	if err := p.Wait(); exitCode(err) != code {
		n.t.Errorf("%v, want exit code %d; it printed:\n%s", err, code, p.Output())
	}
}

func TestRunWaitsForItsFlows(t *testing.T) {
	n := theNetwork(t)
	p, c, addr := n.runDraining("run-wait", "wait")
	p.Signal(syscall.SIGTERM)
	p.WaitFor(t, "draining run-wait: 1 flow left")
	n.serving("run-wait", "tcp", 80, 0)
	if err := echo(c); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	c.Close()
	n.ends(p, 9)
	// The drain ends with the program.
	n.start("s1", self, "run", "--service", "run-wait", "--", "python3", "-c", echoing)
	n.serving("run-wait", "tcp", 80, 1)
	if err := echo(n.dial("c1", "tcp6", port(addr, 80))); err != nil {
		t.Errorf("the next program: %v", err)
	}
}

func TestRunShedsItsFlows(t *testing.T) {
	n := theNetwork(t)
	p, c, _ := n.runDraining("run-shed", "shed")
	p.Signal(syscall.SIGTERM)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the client reads %v, want ECONNRESET", err)
	}
	n.ends(p, 9)
}

func TestASecondSignalEndsRunAtOnce(t *testing.T) {
	n := theNetwork(t)
	p, _, _ := n.runDraining("run-twice", "wait")
	p.Signal(syscall.SIGTERM)
	p.WaitFor(t, "1 flow left")
	p.Signal(syscall.SIGTERM)
	n.ends(p, 9)
}
