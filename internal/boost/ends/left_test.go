package ends

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/stats"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestCloseLeavesNothing, nor does that of an agent which follows one that was killed.
func TestCloseLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	for _, noTCX := range []bool{false, true} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("clsact %v killed %v", noTCX, killed), func(t *testing.T) { closeLeavesNothing(t, noTCX, killed) })
		}
	}
}

func closeLeavesNothing(t *testing.T, noTCX, killed bool) {
	n := newNetwork(t)
	n.echo(t, families[0].at(80))
	before := n.state(t)
	n.start(t, agentConfig{Lanes: everything(), Config: Config{NoTCX: noTCX}})
	programs, pins := n.programs(t), n.pins(t)
	c, err := n.client.Dial("tcp", families[0].at(80))
	must(t, err, talk(c, "hello"))
	if n.state(t) == before {
		t.Error("an agent that runs leaves no trace: does this test still see it?")
	}
	if killed {
		n.agent.Kill()
		n.start(t, agentConfig{Lanes: everything(), Config: Config{NoTCX: noTCX}})
		programs = append(programs, n.programs(t)...)
	} else {
		must(t, finish(c))
	}
	n.close(t)
	nstest.Wait(t, "bpftool prog, ip rule, tc filter in the router's namespace", func() error {
		if after := n.state(t); after != before {
			return fmt.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		if _, err := os.Stat(pins); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is left (%w)", pins, err)
		}
		loaded, err := stats.Loaded()
		for _, id := range programs {
			if loaded[id] != "" {
				return fmt.Errorf("program %d is left, %s", id, loaded[id])
			}
		}
		return err
	})
	c, err = n.client.Dial("tcp", families[0].at(80))
	must(t, err, talk(c, "without an agent"), finish(c))
}

func (n *network) close(t *testing.T) {
	t.Helper()
	fmt.Fprintln(n.in, "close")
	n.agent.WaitFor(t, "closed <nil>")
	must(t, n.agent.Wait())
}

// state is what an agent changes of its namespace.
func (n *network) state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(n.router.Routing(t))
	for _, argv := range [][]string{
		{"cat", "/proc/sys/net/ipv4/tcp_mtu_probing", "/proc/sys/net/ipv4/tcp_tw_reuse", "/proc/sys/net/ipv4/tcp_early_demux"},
		{"tc", "filter", "show", "dev", "p0", "ingress"}, {"tc", "filter", "show", "dev", "p0", "egress"}, {"tc", "filter", "show", "dev", "lo", "ingress"}} {
		fmt.Fprintln(&b, argv)
		b.WriteString(n.router.Run(t, argv...))
	}
	return b.String()
}

// pins is the agent's directory of pins: the one that it has locked.
func (n *network) pins(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", n.agent.PID()))
	must(t, err)
	for _, f := range files {
		if path, err := os.Readlink(f); err == nil && strings.HasPrefix(path, nstest.BPFFS+"/") {
			return path
		}
	}
	t.Fatal("the agent has no pins: does this test still see them?")
	return ""
}

// programs are the agent's, by number. Agents of other tests run beside it, and some of them are killed and leave theirs.
func (n *network) programs(t *testing.T) []uint32 {
	t.Helper()
	ids := stats.Held(n.agent.PID())
	if len(ids) == 0 {
		t.Fatal("the agent has no programs: does this test still see them?")
	}
	return ids
}

// TestTwoAgentsAreOneTooMany in one namespace.
func TestTwoAgentsAreOneTooMany(t *testing.T) {
	n := newNetwork(t)
	n.start(t, agentConfig{})
	n.router.Do(func() {
		if e, err := Open(Config{Ports: []string{"p0"}}); err == nil {
			e.Close()
			t.Error("a second agent runs beside the first")
		} else if !strings.Contains(err.Error(), "another agent runs in this network namespace") {
			t.Error(err)
		}
	})
	n.echo(t, families[1].at(80))
	n.lanes(t, everything()...)
	c, err := n.client.Dial("tcp", families[1].at(80))
	must(t, err, talk(c, "the first is unharmed"), finish(c))
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	n := newNetwork(t)
	for _, c := range []struct {
		cfg     Config
		prepare func()
		want    string
	}{
		{Config{Ports: []string{"p7"}}, nil, "agent's port \"p7\""},
		{Config{}, nil, "no port is given"},
		{Config{Ports: []string{"lo"}}, nil, "expected an interface of Ethernet"},
		{Config{Ports: []string{"p0"}}, func() { t.Setenv("SCAFFOLD_PRETEND_WITHOUT", "bpf_sk_assign") }, "this kernel lacks what an agent of boost needs: giving packets to sockets"},
	} {
		if c.prepare != nil {
			c.prepare()
		}
		n.router.Do(func() {
			e, err := Open(c.cfg)
			if err == nil {
				err = errors.Join(errors.New("it runs"), e.Close())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, expected %q", c.cfg, err, c.want)
			}
		})
	}
}

// What the machine forwards is known at each time: its administrator may change it.
func TestWhatTheMachineForwardsIsKnown(t *testing.T) {
	n := newNetwork(t)
	var e *Ends
	var err error
	n.router.Do(func() { e, err = Open(Config{Ports: []string{"p0"}}) })
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, c := range []struct {
		v4, v6 string
		want   []uint32
	}{{"1", "1", nil}, {"0", "1", []uint32{4}}, {"0", "0", []uint32{4, 6}}, {"1", "0", []uint32{6}}} {
		n.router.Sysctl(t, "net/ipv4/ip_forward", c.v4)
		n.router.Sysctl(t, "net/ipv6/conf/all/forwarding", c.v6)
		if got := e.Stops(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The FINs of a process that was killed leave as resets, which nobody answers: the next one ends their sockets, or the kernel would
// keep them for a minute or two.
func TestWhatAKilledAgentCannotSayIsNotSaidAgain(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		n.echo(t, of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		must(t, err, talk(c, "before"))
		silent := n.server.Listen(t, "tcp", of.at(81)) // takes connections, and says nothing
		half, err := n.client.Dial("tcp", of.at(81))
		must(t, err, half.(*net.TCPConn).CloseWrite())
		server, err := silent.Accept()
		must(t, err)
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		n.agent.Signal(syscall.SIGKILL)
		n.agent.WaitEnd(t)
		for _, end := range []net.Conn{c, half} {
			end.SetDeadline(time.Now().Add(nstest.Deadline))
			if _, err := end.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Fatal(err)
			}
		}
		left := func() string { return n.router.Run(t, "ss", "-Htan", "state", "fin-wait-1", "state", "last-ack") }
		if all := left(); !strings.Contains(all, "FIN-WAIT-1") || !strings.Contains(all, "LAST-ACK") {
			t.Errorf("no socket says that it has ended: does the test still see them?\n%s", all)
		}
		n.start(t, agentConfig{Lanes: everything()})
		n.do(t, "sweep")
		if all := left(); all != "" {
			t.Errorf("sockets say still that they have ended:\n%s", all)
		}
	})
}

// A client uses its port again while the socket of the connection before still waits here for late segments, and nobody boosts it: it
// passes, as any does, behind an agent that was killed and behind one that was stopped.
func TestAPortThatIsUsedAgainPassesWithoutAnAgent(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		l := n.server.Listen(t, "tcp", of.at(80))
		visit := func(from *net.TCPAddr) (own *net.TCPAddr) {
			t.Helper()
			var c net.Conn
			var err error
			n.client.Do(func() {
				d := net.Dialer{LocalAddr: from, Timeout: nstest.Deadline}
				c, err = d.Dial("tcp", of.at(80))
			})
			if err != nil {
				t.Fatalf("%v; the router has\n%s", err, n.router.Run(t, "ss", "-Htan"))
			}
			s, err := l.Accept()
			must(t, err, s.Close()) // first, so that the agent's socket towards the client waits
			c.SetReadDeadline(time.Now().Add(nstest.Deadline))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			must(t, c.Close())
			return c.LocalAddr().(*net.TCPAddr)
		}
		carried := func() (from *net.TCPAddr) {
			t.Helper()
			from = visit(&net.TCPAddr{IP: net.ParseIP(of.client)})
			nstest.Wait(t, "ss -tan in the router's namespace", func() error {
				if all := n.router.Run(t, "ss", "-Htan", "state", "time-wait"); !strings.Contains(all, fmt.Sprint(":", from.Port)) {
					return fmt.Errorf("no socket waits for late segments of port %d: %s", from.Port, all)
				}
				return nil
			})
			return from
		}
		from := carried()
		n.agent.Signal(syscall.SIGKILL)
		n.agent.WaitEnd(t)
		visit(from)
		n.start(t, agentConfig{Lanes: everything()})
		from = carried()
		fmt.Fprintln(n.in, "close")
		n.agent.WaitFor(t, "closed <nil>")
		n.agent.WaitEnd(t)
		visit(from)
	})
}
