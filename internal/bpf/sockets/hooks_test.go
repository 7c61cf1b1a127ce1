package sockets

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/linux/nsenter"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

var services = sid.DefaultSpace().Services

const (
	web  = "[fd5c::1:0:0:a0a0:1]"
	mail = "[fd5c::1:0:0:a0a0:2]"
)

// A world is one namespace whose sockets are watched.
type world struct {
	*Host
	ns     *nstest.NS
	events chan Event
}

func newWorld(t *testing.T) *world {
	nstest.Root(t)
	hooks := open(t)
	ns := nstest.New(t, "socks")
	ns.Sysctl(t, "net/ipv6/ip_nonlocal_bind", "1")
	return join(t, hooks, ns)
}

// Wildcard listeners serve only where that was asked for; a set of hooks from before there was such a thing learns it.
func TestWildcardListenersAreToldWhereTheyServe(t *testing.T) {
	nstest.Root(t)
	open(t)
	if err := os.Remove(filepath.Join(pinDir(nstest.BPFFS), "wildcards")); err != nil {
		t.Fatal(err)
	}
	hooks := open(t)
	ns := nstest.New(t, "wild")
	before := ns.Listen(t, "tcp6", "[::]:79")
	defer before.Close()
	var wild *Host
	var err error
	ns.Do(func() { wild, err = hooks.JoinWild(services) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wild.Close(false) })
	if all, err := wild.Dump(); err != nil || len(all) != 1 || all[0].Port != 79 || all[0].Addr != netip.IPv6Unspecified() {
		t.Fatalf("the dump has %v, %v: want the listener at port 79", all, err)
	}
	l := ns.Listen(t, "tcp6", "[::]:80")
	pc := ns.ListenPacket(t, "udp6", "[::]:80") // its answers would come from another address
	pc.Close()
	l.Close()
	for _, want := range []Event{{Kind: Register, Port: 80}, {Kind: Unregister, Port: 80}} {
		e, err := wild.Read()
		if err != nil || e.Kind != want.Kind || e.Port != want.Port || e.Addr != netip.IPv6Unspecified() || e.Proto != sid.TCP {
			t.Fatalf("%v, %v: want %v of port %d", e, err, want.Kind, want.Port)
		}
	}
	tame := nstest.New(t, "tame")
	w := join(t, hooks, tame)
	tame.Listen(t, "tcp6", "[::]:80")
	if all, err := w.Dump(); err != nil || len(all) != 0 {
		t.Errorf("in a namespace that did not ask for it: %v, %v", all, err)
	}
}

func open(t *testing.T) *Hooks {
	t.Helper()
	hooks, err := Open(nstest.BPFFS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hooks.Close(); err != nil {
			t.Error(err)
		}
	})
	return hooks
}

func join(t *testing.T, hooks *Hooks, ns *nstest.NS) *world {
	t.Helper()
	w := &world{ns: ns, events: make(chan Event, 4096)}
	var err error
	ns.Do(func() { w.Host, err = hooks.Join(services) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Host.Close(false) })
	return w
}

// watch begins to read; until then the test may call Dump itself.
func (w *world) watch() *world {
	go func() {
		defer close(w.events)
		for {
			e, err := w.Read()
			if err != nil {
				return
			}
			w.events <- e
		}
	}()
	return w
}

// expect takes the next event and compares what matters.
func (w *world) expect(t *testing.T, want string) Event {
	t.Helper()
	e := nstest.Receive(t, "the hooks in sockets.bpf.c; wanted "+want, w.events)
	got := fmt.Sprintf("%v %v %v", e.Kind, e.Proto, netip.AddrPortFrom(e.Addr, e.Port))
	if e.Why != 0 {
		got += " " + e.Why.String()
	}
	if got != want {
		t.Fatalf("event %q, want %q (%+v)", got, want, e)
	}
	return e
}

// quiet shows that nothing else was reported: the event of a fresh socket comes next.
func (w *world) quiet(t *testing.T, p *program) {
	t.Helper()
	p.must(t, "udp canary")
	p.must(t, "bind canary %s:9", mail)
	w.expect(t, "register udp "+mail+":9")
	p.must(t, "close canary")
	w.expect(t, "unregister udp "+mail+":9 closed")
}

func TestTCPServesFromListenToClose(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	p.must(t, "tcp a")
	p.must(t, "bind a %s:80", web)
	w.quiet(t, p) // bound is not serving
	p.must(t, "listen a")
	e := w.expect(t, "register tcp "+web+":80")
	if e.PID != uint32(p.PID()) || e.Comm == "" {
		t.Errorf("event of pid %d %q, want pid %d", e.PID, e.Comm, p.PID())
	}
	p.must(t, "close a")
	w.expect(t, "unregister tcp "+web+":80 closed")
	w.quiet(t, p)
}

// What has happened before Flush comes before its answer, however late the kernel wakes the reader.
func TestFlushBringsWhatHasHappened(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	for i := range 20 {
		p.must(t, "udp a")
		p.must(t, "bind a %s:80", web)
		p.must(t, "close a")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		var got []Kind
		for len(got) == 0 || got[len(got)-1] != CaughtUp {
			got = append(got, nstest.Receive(t, "what Flush brings", w.events).Kind)
		}
		if !slices.Equal(got, []Kind{Register, Unregister, CaughtUp}) {
			t.Fatalf("round %d: %v", i, got)
		}
	}
}

func TestShutdownWithdrawsAndListenServesAgain(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	p.must(t, "tcp a")
	p.must(t, "bind a %s:80", web)
	p.must(t, "listen a")
	w.expect(t, "register tcp "+web+":80")
	p.must(t, "shutdown a")
	w.expect(t, "unregister tcp "+web+":80 shut down")
	p.must(t, "listen a")
	w.expect(t, "register tcp "+web+":80")
}

func TestKilledProcessUnregistersAll(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	p.must(t, "tcp a")
	p.must(t, "bind a %s:80", web)
	p.must(t, "listen a")
	w.expect(t, "register tcp "+web+":80")
	p.must(t, "udp b")
	p.must(t, "bind b %s:53", web)
	w.expect(t, "register udp "+web+":53")
	p.Signal(syscall.SIGKILL)
	got := map[string]bool{}
	for range 2 {
		e := nstest.Receive(t, "sock_release", w.events)
		got[fmt.Sprint(e.Kind, e.Proto, e.Port)] = true
		if e.Proto == sid.UDP && syscall.WaitStatus(e.ExitCode).Signal() != syscall.SIGKILL {
			t.Errorf("exit code %#x, want SIGKILL", e.ExitCode)
		}
	}
	if !got[fmt.Sprint(Unregister, sid.TCP, 80)] || !got[fmt.Sprint(Unregister, sid.UDP, 53)] {
		t.Errorf("got %v", got)
	}
}

func TestOnlyTheLastCloseCounts(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	p.must(t, "tcp a")
	p.must(t, "bind a %s:80", web)
	p.must(t, "listen a")
	w.expect(t, "register tcp "+web+":80")
	p.must(t, "dup b a") // a fork shares the open file the same way
	p.must(t, "close a")
	w.quiet(t, p)
	p.must(t, "close b")
	w.expect(t, "unregister tcp "+web+":80 closed")
}

func TestReusePortHasTwoCookies(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	var cookies []uint64
	for _, name := range []string{"a", "b"} {
		p.must(t, "tcp %s", name)
		p.must(t, "reuse %s", name)
		p.must(t, "bind %s %s:80", name, web)
		p.must(t, "listen %s", name)
		cookies = append(cookies, w.expect(t, "register tcp "+web+":80").Cookie)
	}
	p.must(t, "close a")
	if e := w.expect(t, "unregister tcp "+web+":80 closed"); e.Cookie != cookies[0] || cookies[0] == cookies[1] {
		t.Errorf("cookies %v, unregistered %d", cookies, e.Cookie)
	}
}

func TestUDPServesOnAChosenPortWhileUnconnected(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	p.must(t, "udp a")
	p.must(t, "bind a %s:69", web)
	w.expect(t, "register udp "+web+":69")
	p.must(t, "udp transfer")
	p.must(t, "bind transfer %s:0", web) // as TFTP's: the kernel chooses
	w.quiet(t, p)
	p.must(t, "connect a [::1]:99")
	w.expect(t, "unregister udp "+web+":69 connected")
	p.must(t, "close a")
	w.quiet(t, p)
}

func TestFailedBindAndOtherAddressesAreSilent(t *testing.T) {
	w := newWorld(t).watch()
	p := start(t, w.ns, "")
	p.must(t, "udp a")
	p.must(t, "bind a %s:53", web)
	w.expect(t, "register udp "+web+":53")
	p.must(t, "udp b")
	if out := p.do(t, "bind b %s:53", web); out == "ok" {
		t.Fatal("bound twice")
	}
	if out := p.do(t, "bind a %s:54", mail); out == "ok" {
		t.Fatal("rebound")
	}
	p.must(t, "tcp c")
	p.must(t, "bind c [::]:80")
	p.must(t, "listen c")
	w.quiet(t, p)
	p.must(t, "bind b %s:53", mail)
	w.expect(t, "register udp "+mail+":53")
	p.must(t, "close a")
	w.expect(t, "unregister udp "+web+":53 closed")
}

func TestNamespacesAreApart(t *testing.T) {
	a := newWorld(t).watch()
	ns := nstest.New(t, "other")
	ns.Sysctl(t, "net/ipv6/ip_nonlocal_bind", "1")
	b := join(t, a.hooks, ns).watch()
	p, q := start(t, a.ns, ""), start(t, ns, "")
	p.must(t, "udp a")
	p.must(t, "bind a %s:53", web)
	a.expect(t, "register udp "+web+":53")
	b.quiet(t, q)
	a.quiet(t, p)
}

func TestDumpFindsWhatWasBefore(t *testing.T) {
	nstest.Root(t)
	ns := nstest.New(t, "dump")
	ns.Sysctl(t, "net/ipv6/ip_nonlocal_bind", "1")
	p := start(t, ns, "")
	p.must(t, "tcp a")
	p.must(t, "bind a %s:80", web)
	p.must(t, "listen a")
	p.must(t, "udp b")
	p.must(t, "bind b %s:53", web)
	p.must(t, "udp c")
	p.must(t, "bind c %s:54", web)
	p.must(t, "connect c [::1]:99")
	w := join(t, open(t), ns)
	events, err := w.Dump()
	if err != nil {
		t.Fatal(err)
	}
	cookies := map[string]uint64{}
	for _, e := range events {
		cookies[fmt.Sprintf("%v %d", e.Proto, e.Port)] = e.Cookie
	}
	if len(events) != 2 || cookies["tcp 80"] == 0 || cookies["udp 53"] == 0 {
		t.Fatalf("dump: %+v", events)
	}
	w.watch()
	p.must(t, "close a")
	if e := w.expect(t, "unregister tcp "+web+":80 closed"); e.Cookie != cookies["tcp 80"] {
		t.Errorf("cookie %d, the dump said %d", e.Cookie, cookies["tcp 80"])
	}
	p.must(t, "close b")
	w.expect(t, "unregister udp "+web+":53 closed")
	w.quiet(t, p)
}

// A daemon that was killed leaves its row; the next one takes it over and dumps.
func TestRestartTakesTheRowOver(t *testing.T) {
	w := newWorld(t)
	p := start(t, w.ns, "")
	p.must(t, "udp a")
	p.must(t, "bind a %s:53", web)
	w.Host.Close(true)
	p.must(t, "udp b")
	p.must(t, "bind b %s:54", web)
	next := join(t, open(t), w.ns)
	events, err := next.Dump()
	if err != nil || len(events) != 2 {
		t.Fatalf("dump after the restart: %v %+v", err, events)
	}
	if events[0].PID != uint32(p.PID()) {
		t.Errorf("pid %d, want %d", events[0].PID, p.PID())
	}
	next.watch()
	p.must(t, "close b")
	next.expect(t, "unregister udp "+web+":54 closed")
}

// A guest's namespace may have neither a process nor a name of `ip netns`: another host's daemon that starts on the
// machine takes nothing from it while a file or a mount keeps it, and forgets it then.
func TestANamespaceWithoutProcessesIsKeptWhileItIsHeld(t *testing.T) {
	hooks := open(t)
	p := nstest.New(t, "apart").Start(t, "unshare", "-n", "sh", "-c", "echo ready; exec sleep 1000")
	p.WaitFor(t, "ready")
	path, file := fmt.Sprintf("/proc/%d/ns/net", p.PID()), filepath.Join(t.TempDir(), "name")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), syscall.Mount(path, file, "", syscall.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(file, syscall.MNT_DETACH) })
	fd, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	guest := joinAt(t, hooks, fd)
	known := func(when string, want bool) {
		t.Helper()
		open(t) // another daemon's
		var row hooksHostRow
		if err := hooks.maps.Hosts.Lookup(guest.netns, &row); (err == nil) != want {
			t.Errorf("%s: known: %v (%v), want %v", when, err == nil, err, want)
		}
	}
	p.Kill()
	known("the last process has ended", true)
	fd.Close()
	known("the last file is closed", true)
	if err := syscall.Unmount(file, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	known("the last name is gone", false)
}

// joinAt is join for the namespace of a file.
func joinAt(t *testing.T, hooks *Hooks, ns *os.File) (host *Host) {
	t.Helper()
	err := nsenter.Do(ns, func() (err error) {
		host, err = hooks.Join(services)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close(true) })
	return host
}

func TestFullRingIsNoticedAndHealed(t *testing.T) {
	w := newWorld(t)
	p := start(t, w.ns, "")
	const rounds = 2200 // of two events of 64 bytes each: more than the ring holds
	for range rounds {
		p.must(t, "udp a")
		p.must(t, "bind a %s:53", web)
		p.must(t, "close a")
	}
	p.must(t, "udp last")
	p.must(t, "bind last %s:54", web)
	w.watch()
	n := 0
	for e := range w.events {
		if e.Kind == Lost {
			break
		}
		n++
	}
	if n == 0 || n >= 2*rounds {
		t.Errorf("%d events before the loss was told, of %d", n, 2*rounds+1)
	}
	w.Interrupt()
	for range w.events {
	}
	events, err := w.Dump()
	if err != nil || len(events) != 1 || events[0].Port != 54 {
		t.Errorf("dump: %v %+v", err, events)
	}
}

func TestLastHostOutUnpinsAll(t *testing.T) {
	nstest.Root(t)
	hooks, err := Open(nstest.BPFFS)
	if err != nil {
		t.Fatal(err)
	}
	ns := nstest.New(t, "last")
	w := join(t, hooks, ns)
	second, err := Open(nstest.BPFFS)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Host.Close(true), second.Close()); err != nil {
		t.Fatal(err)
	}
	machine := filepath.Join(nstest.BPFFS, "machine")
	if _, err := os.Stat(machine); err != nil {
		t.Fatalf("unpinned while a host is there: %v", err)
	}
	if hooks, err = Open(nstest.BPFFS); err != nil {
		t.Fatal(err)
	}
	w = join(t, hooks, ns)
	if err := errors.Join(w.Host.Close(false), hooks.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(machine); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", machine, err)
	}
}

func TestWildcardBindIsRewritten(t *testing.T) {
	w := newWorld(t).watch()
	dir := nstest.Cgroup(t, "rewrite")
	c, err := RewriteBind(dir, netip.MustParseAddr("fd5c::1:0:0:a0a0:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := start(t, w.ns, dir)
	p.must(t, "tcp a")
	p.must(t, "v6only a")
	p.must(t, "bind a [::]:22")
	p.must(t, "listen a")
	w.expect(t, "register tcp "+web+":22")
	p.must(t, "tcp4 b") // as sshd: the IPv4 wildcard beside it
	p.must(t, "bind b 0.0.0.0:22")
	p.must(t, "listen b")
	if got := p.do(t, "name b"); got != "0.0.0.0:22" {
		t.Errorf("IPv4 socket is bound to %s", got)
	}
	p.must(t, "udp c")
	p.must(t, "bind c [::]:0")
	if got := p.do(t, "name c"); got[:5] != "[::]:" {
		t.Errorf("socket on port 0 is bound to %s", got)
	}
	w.quiet(t, p)
}

func TestCgroupEndsWithItsProcesses(t *testing.T) {
	nstest.Root(t)
	g, err := cgroups.NewChild("scaffold-test-group")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, nstest.New(t, "group"), string(g.Group))
	p.must(t, "tcp a")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err == nil {
		t.Error("the process outlived its cgroup")
	}
}

// Closing while another goroutine is just about to read must end the reading, wherever it was.
func TestCloseMeetsARead(t *testing.T) {
	nstest.Root(t)
	hooks, ns := open(t), nstest.New(t, "closing")
	start(t, ns, "") // a namespace without a process is taken for dead
	for range 100 {
		var host *Host
		var err error
		ns.Do(func() { host, err = hooks.Join(services) })
		if err != nil {
			t.Fatal(err)
		}
		began, ended := make(chan struct{}), make(chan error)
		go func() {
			close(began)
			_, err := host.Read()
			ended <- err
		}()
		<-began
		host.Close(false)
		if err := nstest.Receive(t, "Host.Close", ended); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("read while closing: %v, want os.ErrClosed", err)
		}
	}
}
