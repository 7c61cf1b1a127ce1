package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// guest makes a namespace behind a host's daemon; at finds it by its name. It is known by a file of this process.
func (n *network) guest(host, name string, more ...string) *nstest.NS {
	n.t.Helper()
	ns := nstest.New(n.t, name)
	n.command(host, append([]string{"guest", "add", name, "--netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd())}, more...)...)
	n.t.Cleanup(func() { n.run(host, self, "guest", "rm", name) })
	n.nodes[name] = ns
	return ns
}

// command runs scaffold on a host and wants it to succeed.
func (n *network) command(host string, argv ...string) string {
	n.t.Helper()
	out, err := n.run(host, append([]string{self}, argv...)...)
	if err != nil {
		n.t.Fatalf("scaffold %s on %s: %v\n%s\nlook at: %s", strings.Join(argv, " "), host, err, out, n.look())
	}
	return out
}

// guests are those of a host, by name.
func (n *network) guests(host string) map[string]*apiv1.Guest {
	n.t.Helper()
	all, err := n.askGuests(host)
	if err != nil {
		n.t.Fatal(err)
	}
	return all
}

// askGuests is guests of a daemon that may not answer yet.
func (n *network) askGuests(host string) (map[string]*apiv1.Guest, error) {
	n.t.Helper()
	r, err := n.local(host).ListGuests(n.t.Context(), connect.NewRequest(&apiv1.ListGuestsRequest{}))
	if err != nil {
		return nil, err
	}
	all := map[string]*apiv1.Guest{}
	for _, g := range r.Msg.Guests {
		all[g.Name] = g
	}
	return all, nil
}

// An unmodified server in one container, an unmodified client in another: each with the resolv.conf that its
// runtime mounts. The same between two of one host, and from and to the hosts themselves.
func TestContainersServeAndConnectByName(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("boxed", &apiv1.Policy{Ready: "http:/"})
	dir := t.TempDir()
	for file, text := range map[string]string{"index.html": "hello from a box\n", "resolv.conf": "nameserver ::1\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	box, near, away := n.guest("s1", "box"), n.guest("s1", "near"), n.guest("c1", "away")
	box.Start(t, "python3", "-m", "http.server", "--bind", addr.String(), "--directory", dir, "80")
	n.serving("boxed", "tcp", 80, 1)
	for _, from := range []*nstest.NS{away, near, box} {
		out := from.Run(t, "unshare", "-m", "sh", "-c", "mount --bind "+dir+"/resolv.conf /etc/resolv.conf && exec curl -sS -m 30 http://boxed.svc/")
		if out != "hello from a box\n" {
			t.Errorf("from %s: %q\nlook at: %s", from.Name, out, n.look())
		}
	}
	for _, host := range []string{"c1", "s1"} {
		if out, err := n.run(host, "curl", "-sS", "-m", "30", "http://boxed.svc/"); out != "hello from a box\n" {
			t.Errorf("from %s: %q %v", host, out, err)
		}
	}
	if g := n.guests("s1")["box"]; fmt.Sprint(g.GetServes()) != "[boxed tcp/80]" {
		t.Errorf("`guest ls` says that box serves %v", g.GetServes())
	}
}

// A container whose server listens on all addresses, and knows of nothing, serves what it was added for; it is found
// by a daemon that begins later, and its end is noticed.
func TestAContainerServesByItsWildcardListener(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("plain")
	box := n.guest("s1", "plain", "--serve", "plain")
	start := func(port string) *nstest.Proc {
		return box.Start(t, "python3", "-m", "http.server", "--bind", "::", "--directory", t.TempDir(), port)
	}
	first := start("80")
	n.serving("plain", "tcp", 80, 1)
	fetch := func(port string) {
		t.Helper()
		if out, err := n.run("c1", "curl", "-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "http://["+addr.String()+"]:"+port+"/"); out != "200" {
			t.Errorf("port %s: %q %v\nlook at: %s", port, out, err, n.look())
		}
	}
	fetch("80")
	if out := box.Run(t, "curl", "-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1/"); out != "200" {
		t.Errorf("by its own loopback: %q", out)
	}
	n.kill("s1/hostd")
	start("81")
	n.do("start s1/hostd")
	n.serving("plain", "tcp", 81, 1)
	fetch("80")
	fetch("81")
	first.Kill()
	n.serving("plain", "tcp", 80, 0)
}

// What a name cannot lead to is told to the operator, with the cure.
func TestWhatAGuestCannotServeIsTold(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("half")
	box := n.guest("s1", "half", "--serve", "half")
	box.Listen(t, "tcp4", "0.0.0.0:80")
	box.Listen(t, "tcp", "[::]:81")
	bare := box.ListenPacket(t, "udp", "[::]:123")
	box.ListenPacket(t, "udp4", "0.0.0.0:40000") // as a client's
	n.serving("half", "tcp", 81, 1)
	got := n.guests("s1")["half"].GetTrouble()
	want := fmt.Sprintf("tcp/80 listens on IPv4 alone, and names lead to IPv6: have it listen on [::]; "+
		"udp/123 answers from no address in particular, which clients would not know: have it bind %v", addr)
	if got != want {
		t.Errorf("`guest ls` says %q, want %q", got, want)
	}
	bare.Close()
	box.ListenPacket(t, "udp6", port(addr, 123))
	n.serving("half", "udp", 123, 1)
	if got := n.guests("s1")["half"].GetTrouble(); strings.Contains(got, "udp") {
		t.Errorf("with a socket at the address: %q", got)
	}
}

// says sends a line and wants the answer of that guest.
func says(c net.Conn, text, name string) error {
	c.SetDeadline(time.Now().Add(answerTime))
	if _, err := fmt.Fprintln(c, text); err != nil {
		return err
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if want := name + " " + text + "\n"; err == nil && got != want {
		return fmt.Errorf("%q, want %q", got, want)
	}
	return err
}

// The daemon of a container host is killed and started again: flows of its guests go on meanwhile and afterwards,
// what they serve stays served, what began meanwhile is found.
func TestGuestsOutliveTheirHostsDaemon(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("outlive")
	n.guest("s1", "server")
	n.guest("c1", "client")
	n.serveTCP("server", port(addr, 80))
	n.serving("outlive", "tcp", 80, 1)
	c := n.dial("client", "tcp6", port(addr, 80))
	want := func(when string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v\nthe edges count %v and %v\nlook at: %s", when, err, n.drops("c1"), n.drops("s1"), n.look())
		}
	}
	want("at first", says(c, "one", "server"))
	for _, host := range []string{"s1", "c1"} {
		n.kill(host + "/hostd")
	}
	want("without daemons", says(c, "two", "server"))
	more := n.dial("client", "tcp6", port(addr, 80))
	want("a flow that began without daemons", says(more, "three", "server"))
	n.serveTCP("server", port(addr, 81))
	for _, host := range []string{"s1", "c1"} {
		n.do("start " + host + "/hostd")
	}
	n.serving("outlive", "tcp", 81, 1)
	want("with new daemons", says(c, "four", "server"))
	want("a listener that began without a daemon", says(n.dial("client", "tcp6", port(addr, 81)), "five", "server"))
	for host, name := range map[string]string{"s1": "server", "c1": "client"} {
		nstest.Wait(t, n.look(), func() error { // the new daemon may not answer yet
			all, err := n.askGuests(host)
			if g := all[name]; err == nil && g.GetFlows() == 0 {
				err = fmt.Errorf("`guest ls` on %s says of %s: %v", host, name, g)
			}
			return err
		})
	}
}

// Two guests and the host itself serve the same: one instance to the network. Whose process dies, whose namespace
// goes: its clients hear it at once, the others serve on, and nothing of it is left.
func TestAGuestThatDiesLeavesItsShareToOthers(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("shared")
	one, two := n.guest("s1", "one"), n.guest("s1", "two")
	serves := func(name string, count int) {
		t.Helper()
		nstest.Wait(t, n.look(), func() error {
			if g := n.guests("s1")[name]; len(g.GetServes()) != count {
				return fmt.Errorf("%s serves %v, want %d", name, g.GetServes(), count)
			}
			return nil
		})
	}
	p := one.Start(t, "python3", "-c", half, addr.String())
	p.WaitFor(t, "listening")
	n.serving("shared", "tcp", 80, 1)
	c := n.dial("c1", "tcp6", port(addr, 80))
	c.SetDeadline(time.Now().Add(answerTime))
	io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	p.WaitFor(t, "half")
	n.serveTCP("two", port(addr, 80))
	serves("two", 1)
	p.Signal(syscall.SIGKILL)
	if b, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a server in a guest was killed in the middle of its answer; the client read %d bytes, then %v: want ECONNRESET", len(b), err)
	}
	p.WaitEnd(t)
	serves("one", 0)
	for range 8 {
		if err := says(n.dial("c1", "tcp6", port(addr, 80)), "hello", "two"); err != nil {
			t.Fatalf("after the death of the other: %v\nlook at: %s", err, n.look())
		}
	}
	c = n.dial("c1", "tcp6", port(addr, 80))
	if err := says(c, "still here", "two"); err != nil {
		t.Fatal(err)
	}
	link := n.guests("s1")["two"].Interface
	n.command("s1", "guest", "rm", "two")
	if b, err := io.ReadAll(c); err == nil {
		t.Errorf("the guest was removed; its client read %q and an ordinary end, want an error", b)
	}
	if out, err := n.run("s1", "ip", "link", "show", link); err == nil {
		t.Errorf("left on the host: %s", out)
	}
	if out := two.Run(t, "sh", "-c", "ip -o link; ip -6 rule; ip -6 route show table all; cat /proc/sys/net/ipv6/ip_nonlocal_bind"); strings.Contains(out, "scaffold0") || strings.Contains(out, "23727") || !strings.HasSuffix(out, "\n0\n") {
		t.Errorf("left in the guest:\n%s", out)
	}
	n.serving("shared", "tcp", 80, 0)
}

// A namespace whose name or process is gone is a guest no more, and its name is free.
func TestAGuestGoesWithItsProcess(t *testing.T) {
	n := theNetwork(t)
	n.create("brief")
	addr := netip.MustParseAddr(n.address("brief"))
	for round := range 2 {
		p := n.start("s1", "unshare", "-n", "sh", "-c", "ip link set lo up; echo ready; exec sleep 1000")
		p.WaitFor(t, "ready")
		n.command("s1", "guest", "add", "brief", "--pid", fmt.Sprint(p.PID()))
		ns := nstest.Enter(t, "brief", fmt.Sprintf("/proc/%d/ns/net", p.PID()))
		n.nodes["brief"] = ns
		l := n.serveTCP("brief", port(addr, 80))
		n.serving("brief", "tcp", 80, 1)
		c := n.dial("c1", "tcp6", port(addr, 80))
		if err := says(c, "hello", "brief"); err != nil {
			t.Fatal(err)
		}
		if round == 1 { // it goes while there is no daemon
			n.kill("s1/hostd")
		}
		p.Kill()
		if round == 1 {
			n.do("start s1/hostd")
		}
		nstest.Wait(t, n.look(), func() error {
			all, err := n.askGuests("s1")
			if g := all["brief"]; err == nil && g != nil {
				err = fmt.Errorf("guest of a process that is gone: %v", g)
			}
			return err
		})
		n.serving("brief", "tcp", 80, 0)
		if b, err := io.ReadAll(c); err == nil {
			t.Errorf("its client read %q and an ordinary end, want an error", b)
		}
		l.Close()
	}
}

func (n *network) address(service string) string {
	n.t.Helper()
	s, err := n.service(service)
	if err != nil {
		n.t.Fatal(err)
	}
	return s.Address
}

// What cannot be is said in one line, with the exit code that fits, and leaves nothing.
func TestGuestsThatCannotBe(t *testing.T) {
	n := theNetwork(t)
	taken := n.guest("s1", "taken")
	clash := nstest.New(t, "clash")
	clash.Run(t, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
	clash.Run(t, "ip", "-6", "addr", "add", "fd5c::7/128", "dev", "eth0", "nodad")
	ours := nstest.New(t, "ours")
	ours.Run(t, "ip", "link", "add", "scaffold0", "type", "veth", "peer", "name", "eth1")
	path := func(ns *nstest.NS) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd()) }
	for _, c := range []struct {
		argv []string
		code int
		says string
	}{
		{[]string{"add", "nobody"}, 3, "no network namespace at /run/netns/nobody"},
		{[]string{"add", "--pid", "4194305"}, 3, "no process 4194305"},
		{[]string{"add", "--pid", "-1"}, 2, "want the number of a process"},
		{[]string{"add", "db", "--pid", "0"}, 2, "not running"},
		{[]string{"add", "file", "--netns", "/etc/passwd"}, 2, "/etc/passwd is no network namespace"},
		{[]string{"add", "user", "--netns", "/proc/self/ns/user"}, 2, "is no network namespace"},
		{[]string{"add", "-x"}, 2, "unknown"},
		{[]string{"add", "a b", "--netns", path(taken)}, 2, "guest name"},
		{[]string{"add"}, 2, "which namespace?"},
		{[]string{"add", "x", "--pid", "1", "--netns", "/x"}, 2, "one of them"},
		{[]string{"add", "taken", "--netns", path(taken)}, 4, "guest taken is there already"},
		{[]string{"add", "again", "--netns", path(taken)}, 4, "that namespace is guest taken already"},
		{[]string{"add", "self", "--netns", "/proc/self/ns/net"}, 4, "the host's own namespace"},
		{[]string{"add", "clash", "--netns", path(clash)}, 4, "it has the address fd5c::7 on eth0"},
		{[]string{"add", "ours", "--netns", path(ours)}, 4, "it has an interface scaffold0 already"},
		{[]string{"add", "new", "--netns", path(ours), "--serve", "nonesuch"}, 3, `there is no service "nonesuch"`},
		{[]string{"rm", "nobody"}, 3, `there is no guest "nobody" on host s1`},
	} {
		out, err := n.run("s1", append([]string{self, "guest"}, c.argv...)...)
		code := 0
		if exit, ok := errors.AsType[exitCoder](err); ok {
			code = exit.ExitCode()
		}
		if code != c.code || !strings.Contains(out, c.says) || strings.Count(out, "\n") > 2 {
			t.Errorf("guest %s: exit code %d, want %d with %q: %s", strings.Join(c.argv, " "), code, c.code, c.says, out)
		}
	}
	out, err := n.run("c1", self, "guest", "add", "other", "--netns", path(taken))
	if err == nil || !strings.Contains(out, "a hostd is its edge already") {
		t.Errorf("a guest of two hosts: %v %s", err, out)
	}
	if all := n.guests("s1"); len(all) != 1 {
		t.Errorf("left: %v", all)
	}
	if out := clash.Run(t, "ip", "-o", "link"); strings.Contains(out, "scaffold0") {
		t.Errorf("left in a namespace that was refused: %s", out)
	}
}

type exitCoder interface {
	error
	ExitCode() int
}

// Flows of guests move with their hosts, as a client's and as a server's.
func TestGuestsFlowsMoveWithTheirHosts(t *testing.T) {
	m := theMobile(t)
	m.guest("c1", "rider")
	m.guest("s2", "boxed")
	talks := []*talk{m.talkBetween("rider", "boxed", 300), m.talkBetween("rider", "s1", 301), m.talkBetween("c1", "boxed", 302)}
	m.goOn("the beginning", talks...)
	for _, how := range []string{"gap 100ms first", "gap 300ms"} {
		m.hop("c1", how)
		m.goOn("a move of the client's host, "+how, talks...)
		m.hop("s2", how)
		m.goOn("a move of the server's host, "+how, talks...)
	}
}

// Guests of hosts whose uplink is a tunnel, one of VXLAN and one of WireGuard behind a NAT, serve and connect: whole
// streams through the smaller MTU, and while their hosts' daemons die and the tunnels with them.
func TestGuestsGoThroughTheirHostsTunnels(t *testing.T) {
	n := theUnderlay(t)
	for _, host := range []string{"c1", "s1", "s2"} {
		n.tunneled(host, anywhere)
	}
	n.guest("s1", "deep")
	n.guest("s2", "shallow")
	deep, shallow := n.servedBy("deep", "deep"), n.servedBy("shallow", "shallow")
	for _, c := range []struct {
		from string
		to   netip.Addr
	}{{"shallow", deep}, {"deep", shallow}, {"far", deep}, {"s2", deep}} {
		l := n.talks(c.from, c.to)
		l.progress("through tunnels")
		l.finish()
	}
	if mtu := n.guests("s1")["deep"].GetMtu(); mtu > 1290 || mtu < 1280 {
		t.Errorf("the guest behind WireGuard has an MTU of %d, want its host's", mtu)
	}
	l := n.talks("shallow", deep)
	for _, host := range []string{"s1", "s2"} {
		n.kill(host + "/hostd") // and the WireGuard process with it
		n.do("start " + host + "/hostd")
		n.tunneled(host, anywhere)
		l.progress("after " + host + "'s daemon and tunnel were killed")
	}
	l.finish()
}

// A container runtime's hook: the state on the standard input and no environment, before the container's program begins
// and after its end; a restart in between that nobody announced.
func TestARuntimesHookMakesAContainerAGuest(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("hooked")
	hook := func(status string, pid int) {
		t.Helper()
		state := fmt.Sprintf(`{"ociVersion":"1.0.2","id":"0123456789abcdef","status":%q,"pid":%d,"bundle":"/b","annotations":{"dev.scaffold.guest":"hooked","dev.scaffold.serve":"hooked"}}`, status, pid)
		cmd := exec.Command(self, "guest", "hook", "--lab", n.lab.File.Name, "--host", "s1")
		cmd.Env, cmd.Stdin = []string{}, strings.NewReader(state)
		if out, err := nstest.TryBy(n.starter("s1"), cmd); err != nil {
			t.Fatalf("the hook at %s: %v %s\nlook at: %s", status, err, out, n.look())
		}
	}
	box := func() *nstest.Proc {
		t.Helper()
		cmd := exec.Command("unshare", "-n", "sh", "-c", "echo made; read go && exec python3 -m http.server --bind :: 80")
		program, runtime, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = program
		p := nstest.StartBy(t, "container", n.starter("s1"), cmd)
		program.Close()
		p.WaitFor(t, "made")
		hook("created", p.PID())
		fmt.Fprintln(runtime, "go")
		runtime.Close()
		n.serving("hooked", "tcp", 80, 1)
		if out, err := n.run("c1", "curl", "-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "http://["+addr.String()+"]/"); out != "200" {
			t.Errorf("%q %v\nlook at: %s", out, err, n.look())
		}
		return p
	}
	box().Kill() // of which no hook tells
	second := box()
	second.Kill()
	hook("stopped", 0)
	if g := n.guests("s1")["hooked"]; g != nil {
		t.Errorf("after the end: %v", g)
	}
	n.serving("hooked", "tcp", 80, 0)
}
