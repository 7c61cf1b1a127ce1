package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A small is the smallest network that is of use: one machine is controller, router and host; two hosts are cabled to it.
type small struct {
	t                *testing.T
	dir              string
	machine, a, b    *nstest.NS
	attacker         *nstest.NS // cabled to the machine as well, and no member
	controld, router *nstest.Proc
	hosts            map[string]*nstest.Proc
}

func newSmall(t *testing.T) *small {
	nstest.Root(t)
	s := &small{t: t, dir: t.TempDir(), machine: nstest.New(t, "machine"), a: nstest.New(t, "a"), b: nstest.New(t, "b"), attacker: nstest.New(t, "attacker"), hosts: map[string]*nstest.Proc{}}
	for dev, ns := range map[string]*nstest.NS{"pa": s.a, "pb": s.b, "pc": s.attacker} {
		nstest.Veth(t, s.machine, dev, ns, "up0")
		s.machine.Up(t, dev)
		ns.Up(t, "up0")
	}
	s.machine.Up(t, "lo")
	s.machine.Sysctl(t, "net/ipv6/conf/all/forwarding", "0")
	s.controld = s.machine.StartUntil(t, []string{s.socket("controld")}, self, "controld", "--trust", "open", "--data", filepath.Join(s.dir, "data"), "--socket", s.socket("controld"))
	s.startRouter()
	s.startHost("machine", s.machine)
	s.startHost("a", s.a, "--uplink", "up0")
	s.startHost("b", s.b, "--uplink", "up0")
	s.up("machine", "a", "b")
	return s
}

func (s *small) socket(daemon string) string { return filepath.Join(s.dir, daemon) }

func (s *small) startRouter() {
	s.router = s.machine.StartUntil(s.t, []string{s.socket("routerd")}, self, "routerd", "--name", "r1", "--service", "--controller", "unix:"+s.socket("controld"), "--socket", s.socket("routerd"))
}

func (s *small) startHost(name string, at *nstest.NS, flags ...string) {
	argv := []string{self, "hostd", "--name", name, "--socket", s.socket(name), "--state", filepath.Join(s.dir, "state-"+name), "--dns", "[::1]:53"}
	s.hosts[name] = at.StartUntil(s.t, []string{s.socket(name)}, append(argv, flags...)...)
}

// ends waits for a daemon's end after a signal.
func (s *small) ends(p *nstest.Proc, by syscall.Signal) {
	s.t.Helper()
	p.Signal(by)
	if err := p.Wait(); err != nil {
		s.t.Fatalf("it ended with %v; it printed:\n%s", err, p.Output())
	}
}

// scaffold asks the controller, on its machine.
func (s *small) scaffold(argv ...string) string {
	s.t.Helper()
	return s.machine.Run(s.t, append(append([]string{self}, argv...), "--api", "unix:"+s.socket("controld"))...)
}

// up waits until the hosts are.
func (s *small) up(hosts ...string) {
	s.t.Helper()
	nstest.Wait(s.t, s.said(), func() error {
		list := s.scaffold("host", "ls")
		for _, h := range hosts {
			if !isUp(list, h) {
				return fmt.Errorf("%s is not up:\n%s", h, list)
			}
		}
		return nil
	})
}

func isUp(list, host string) bool {
	return slices.ContainsFunc(fields(list), func(f []string) bool { return f[0] == host && f[1] == "up" })
}

// fields are those of each line of a list.
func fields(list string) (all [][]string) {
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 2 {
			all = append(all, f)
		}
	}
	return all
}

func (s *small) said() string {
	return "what the daemons printed:\n" + s.router.Output() + s.hosts["machine"].Output()
}

// service makes one and returns its address.
func (s *small) service(name string) netip.Addr {
	s.t.Helper()
	s.scaffold("service", "create", name)
	var got struct{ Address string }
	if err := json.Unmarshal([]byte(s.scaffold("service", "show", name, "-o", "json")), &got); err != nil {
		s.t.Fatal(err)
	}
	return netip.MustParseAddr(got.Address)
}

// serve answers every line with the name of the namespace and the line.
func (s *small) serve(at *nstest.NS, to string) net.Listener {
	l := at.Listen(s.t, "tcp6", to)
	go accept(l, func(c net.Conn) {
		for in := bufio.NewReader(c); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(c, at.Name+" "+line) // the client sees it
		}
	})
	return l
}

// asks sends a line and reads the answer.
func asks(c net.Conn, line string) (string, error) {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	return strings.TrimSpace(string(buf[:n])), err
}

// talks waits until the namespace reaches the service and is answered by who.
func (s *small) talks(from *nstest.NS, to, who string) net.Conn {
	s.t.Helper()
	var talking net.Conn
	nstest.Wait(s.t, s.said(), func() error {
		c, err := from.Dial("tcp6", to)
		if err != nil {
			return fmt.Errorf("from %s: %w", from.Name, err)
		}
		if got, err := asks(c, "x"); err != nil || got != who+" x" {
			c.Close()
			return fmt.Errorf("from %s: %q, %v, want the answer of %s", from.Name, got, err, who)
		}
		talking = c
		return nil
	})
	s.t.Cleanup(func() { talking.Close() })
	return talking
}

// One machine may be controller, router and host: its programs reach what others serve and serve others, and each other;
// flows outlive restarts of all three; and each of the daemons may go without taking the others along.
func TestOneMachineIsControllerRouterAndHost(t *testing.T) {
	s := newSmall(t)
	own, far := port(s.service("own"), 80), port(s.service("far"), 80)
	s.serve(s.machine, own)
	s.serve(s.a, far)
	flows := []net.Conn{s.talks(s.a, own, "machine"), s.talks(s.machine, own, "machine"), s.talks(s.machine, far, "a"), s.talks(s.b, far, "a")}
	alive := func(when string) {
		t.Helper()
		for i, c := range flows {
			if got, err := asks(c, when); err != nil || !strings.HasSuffix(got, when) {
				t.Fatalf("%s: flow %d: %q, %v; %s", when, i, got, err, s.said())
			}
		}
	}

	s.ends(s.router, syscall.SIGUSR1)
	alive("without its router's daemon")
	s.startRouter()
	alive("with another")
	s.ends(s.hosts["machine"], syscall.SIGUSR1)
	alive("without its host's daemon")
	s.startHost("machine", s.machine)
	s.up("machine", "a", "b")
	alive("with another one")
	s.talks(s.a, own, "machine")

	// The host goes: the router is whole, and nothing of the host is left.
	s.ends(s.hosts["machine"], syscall.SIGTERM)
	flows = flows[3:]
	alive("after the host of the router's machine has left")
	s.talks(s.b, far, "a")
	for what, left := range map[string]string{"rules": s.machine.Run(t, "ip", "-6", "rule"), "links": s.machine.Run(t, "ip", "-o", "link")} {
		for _, bad := range []string{"237", underlay.OwnUplink, underlay.OwnPort} {
			if strings.Contains(left, bad) {
				t.Errorf("%s: %s is left:\n%s", what, bad, left)
			}
		}
	}

	if got := strings.TrimSpace(s.machine.Run(t, "cat", "/proc/sys/net/ipv4/udp_early_demux", "/proc/sys/net/ipv6/ip_nonlocal_bind")); got != "1\n0" {
		t.Errorf("udp_early_demux and ip_nonlocal_bind are %q after the host's end", got)
	}

	// It comes again; then the router goes: the host is whole, by a cable to another router if it has one.
	s.startHost("machine", s.machine)
	s.up("machine")
	s.talks(s.machine, far, "a")
	s.ends(s.router, syscall.SIGTERM)
	if got := strings.TrimSpace(s.machine.Run(t, "cat", "/proc/sys/net/ipv6/conf/all/forwarding")); got != "0" {
		t.Errorf("forwarding is %s after the router's end", got)
	}
	s.ends(s.hosts["machine"], syscall.SIGUSR1)
	s.startHost("machine", s.machine)
	nstest.Wait(t, "the machine's links", func() error {
		if links := s.machine.Run(t, "ip", "-o", "link"); strings.Contains(links, underlay.OwnUplink) {
			return fmt.Errorf("the cable to a router that is no more:\n%s", links)
		}
		return nil
	})
}
