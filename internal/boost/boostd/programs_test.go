package boostd

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestCurlGetsAFileAndTheServerSeesTheClient(t *testing.T) {
	safety.Test(t, safety.Bytes)
	each(t, func(t *testing.T, n *network, f family) {
		url, sum := n.serve(f, 50<<20)
		out := filepath.Join(t.TempDir(), "out")
		n.client.Run(t, "curl", "-sS", "--fail", "--limit-rate", "200M", "-o", out, url)
		if sumOf(t, out) != sum {
			t.Error("the file is another one")
		}
	})
}

// Both ends see each other as they are, although an agent is between them.
func TestBothEndsSeeEachOther(t *testing.T) {
	each(t, func(t *testing.T, n *network, f family) {
		l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
		for range 20 {
			c, err := n.client.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.RemoteAddr().String() != c.LocalAddr().String() || s.LocalAddr().String() != c.RemoteAddr().String() {
				t.Errorf("the client is %v to %v, the server %v to %v", c.LocalAddr(), c.RemoteAddr(), s.LocalAddr(), s.RemoteAddr())
			}
		}
	})
}

func TestIperf3GoesBothWays(t *testing.T) {
	each(t, func(t *testing.T, n *network, f family) {
		for _, args := range [][]string{{"-n", "100M"}, {"-R", "-n", "100M"}, {"-P", "4", "-n", "40M"}} {
			// A server for each: one that has served a client is busy for a moment more, and refuses the next.
			p := n.server.Start(t, "iperf3", "-s", "-1", "-B", plain(f.server), "--forceflush")
			p.WaitFor(t, "listening")
			n.client.Run(t, append([]string{"iperf3", "-c", plain(f.server)}, args...)...)
			if err := p.Wait(); err != nil {
				t.Errorf("iperf3 -s: %v\n%s", err, p.Output())
			}
		}
	})
}

func TestRefusedStaysRefused(t *testing.T) {
	each(t, func(t *testing.T, n *network, f family) {
		if _, err := n.client.Dial("tcp", net.JoinHostPort(plain(f.server), "99")); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a port at which nobody listens: %v", err)
		}
	})
}

// A frozen agent at either side takes no new connections: they pass.
func TestAFrozenAgentIsPassedBy(t *testing.T) {
	n := newNetwork(t)
	n.both()
	f := families[0]
	l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
	for _, name := range []string{"x", "y"} {
		n.agents[name].SignalAll(syscall.SIGSTOP)
		for range 2 { // the first may be held until the agent's time is over, and is sent again then
			c, err := n.client.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatalf("agent %s is frozen: %v", name, err)
			}
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			c.Close()
		}
		n.agents[name].SignalAll(syscall.SIGCONT)
		n.carried()
	}
}

// What was sent before an agent is killed with -9 is not taken for all: both ends are reset.
func TestBothEndsOfAKilledAgentAreReset(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, name := range []string{"x", "y"} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			n.both()
			f := families[1]
			l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
			c, err := n.client.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Write([]byte("the beginning")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, len("the beginning"))); err != nil {
				t.Fatal(err)
			}
			n.agents[name].Kill()
			for what, end := range map[string]net.Conn{"client": c, "server": s} {
				end.SetDeadline(time.Now().Add(nstest.Deadline))
				if got, err := end.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the %s got %d bytes, %v: want a reset", what, got, err)
				}
			}
			n.start(name)
			n.carried()
		})
	}
}

func TestAnAgentThatEndsLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	n := newNetwork(t)
	look := func() string {
		return n.x.Routing(t) + n.x.Run(t, "sh", "-c", "tc filter show dev p0 ingress; tc filter show dev p0 egress; sysctl -a 2>/dev/null | grep -E 'rp_filter|tcp_fwmark|route_localnet'")
	}
	before := look()
	n.both()
	n.agents["x"].Signal(syscall.SIGTERM)
	n.agents["x"].WaitFor(t, "ended: <nil>")
	if after := look(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// An agent of another key gets no trunk, and says so; connections pass.
func TestAnAgentOfAnotherKeyIsNone(t *testing.T) {
	safety.Test(t, safety.Door)
	n := newNetwork(t)
	n.start("x")
	if err := os.Remove(filepath.Join(n.dir, "y.key")); err != nil {
		t.Fatal(err)
	}
	n.start("y")
	n.agents["x"].WaitFor(t, errUnknownKey.Error())
	f := families[0]
	l := n.server.Listen(t, "tcp", net.JoinHostPort(plain(f.server), "7"))
	c, err := n.client.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if out := n.y.Run(t, "ss", "-Htn", "dport", "=", "7"); strings.Contains(out, plain(f.client)) {
		t.Errorf("the connection was carried: %s", out)
	}
}
