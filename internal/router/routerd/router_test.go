package routerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var (
	own    = space.Locator(0x100)
	server = space.Locator(0x101)
	client = space.Locator(0x102)
	web    = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
)

// A site is a service router with a client, a server and the controller around it.
type site struct {
	t                      *testing.T
	router, client, server *nstest.NS
	controller             *fakeController
	cfg                    Config
	silent                 atomic.Bool // the server does not answer probes
}

func newSite(t *testing.T) *site {
	s := &site{t: t, router: nstest.New(t, "router"), client: nstest.New(t, "client"), server: nstest.New(t, "server")}
	manager := nstest.New(t, "controller")
	nstest.Veth(t, s.router, "to-client", s.client, "up")
	nstest.Veth(t, s.router, "to-server", s.server, "up")
	nstest.Veth(t, s.router, "mgmt", manager, "mgmt")
	s.router.Addr(t, "mgmt", "fd00::1/64")
	manager.Addr(t, "mgmt", "fd00::2/64")
	s.server.Addr(t, "up", server.Host().String()+"/128")
	s.server.Route(t, space.AS.String(), s.router.LinkLocal(t, "to-server").String(), "up")
	s.controller = newController(t, manager.Listen(t, "tcp6", "[fd00::2]:0"))
	s.cfg = Config{Name: "r1", Service: true, Controllers: []string{s.controller.endpoint}, Management: "mgmt",
		Socket: filepath.Join(t.TempDir(), "routerd.sock")}
	s.answerProbes()
	return s
}

// answerProbes is the server's edge as far as the router sees it.
func (s *site) answerProbes() {
	c := s.server.ListenPacket(s.t, "udp6", fmt.Sprintf("[%s]:%d", server.Host(), sid.Port))
	go func() {
		buf := make([]byte, wire.MaxLen)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			if kind, h, err := wire.ParseHeader(buf[:n]); err == nil && kind == wire.TypeProbe && !s.silent.Load() {
				c.WriteTo(wire.ProbeAck{Header: h}.Append(nil), from)
			}
		}
	}()
}

// start runs routerd in ns.
func start(t *testing.T, ns *nstest.NS, cfg Config) *nstest.Proc {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonEnv+"="+string(text))
	p := ns.StartCmd(t, cmd)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("routerd %s:\n%s", cfg.Name, p.Output())
		}
	})
	return p
}

// rules are those of the site with the services given.
func (s *site) rules(generation uint64, services ...sid.ServiceID) *apiv1.Rules {
	r := &apiv1.Rules{Generation: generation,
		Routes: []*apiv1.Route{
			{Prefix: server.Prefix().String(), Via: s.server.LinkLocal(s.t, "up").String(), Port: "to-server", Mac: s.server.MAC(s.t, "up")},
			{Prefix: client.Prefix().String(), Via: s.client.LinkLocal(s.t, "up").String(), Port: "to-client", Mac: s.client.MAC(s.t, "up")},
		},
		Probes: []*apiv1.Probe{{Locator: uint64(server), Port: "to-server"}},
	}
	for _, id := range services {
		r.Services = append(r.Services, &apiv1.ServiceRule{Ss: id.SS, Suffix: uint64(id.Suffix), Instances: 1})
		r.Resolutions = append(r.Resolutions, &apiv1.Resolution{Ss: id.SS, Suffix: uint64(id.Suffix), Proto: 6, Port: 80,
			Targets: []*apiv1.Target{{Locator: uint64(server), Weight: 100}}})
	}
	return r
}

// syn sends a first packet from the client and returns it as it left, and the raw socket's end.
func (s *site) syn(frames *nstest.Frames, id sid.ServiceID, port uint16, n uint64) netip.Addr {
	s.t.Helper()
	src := client.Addr(uint64(sid.NewSocketID(n)))
	p := bpftest.Packet{Src: src, Dst: space.ServiceAddr(id), Proto: bpftest.TCP, SPort: 40000, DPort: port, Flags: bpftest.SYN}
	head := append(append([]byte(nil), s.router.MAC(s.t, "to-client")...), s.client.MAC(s.t, "up")...)
	frames.Send(s.t, append(append(head, 0x86, 0xdd), p.Bytes()...))
	return src
}

// resolves checks that a SYN to the service reaches the server, at its locator.
func (s *site) resolves(id sid.ServiceID, n uint64) {
	s.t.Helper()
	at := s.server.Frames(s.t, "up")
	src := s.syn(s.client.Frames(s.t, "up"), id, 80, n)
	at.Next(s.t, fmt.Sprintf("SYN from %v to %v", src, server), func(f []byte) bool {
		if len(f) < 54 || f[12] != 0x86 || f[20] != bpftest.TCP {
			return false
		}
		from, to := bpftest.Addrs(f[14:])
		return from == src && to == server.Addr(uint64(id.Suffix)) && bpftest.ChecksumOK(f[14:])
	})
}

// refuses checks that a SYN to the service is answered with the code.
func (s *site) refuses(id sid.ServiceID, port uint16, n uint64, code byte) {
	s.t.Helper()
	at := s.client.Frames(s.t, "up")
	src := s.syn(at, id, port, n)
	at.Next(s.t, fmt.Sprintf("ICMPv6 code %d to %v", code, src), func(f []byte) bool {
		if len(f) < 62 || f[12] != 0x86 || f[20] != bpftest.ICMPv6 || f[54] != 1 {
			return false
		}
		from, to := bpftest.Addrs(f[14:])
		return from == own.Host() && to == src && f[55] == code && bpftest.ChecksumOK(f[14:])
	})
}

func (s *site) status() (st Status, err error) {
	c, base, err := api.Dial("unix:" + s.cfg.Socket)
	if err != nil {
		return st, err
	}
	defer c.CloseIdleConnections()
	resp, err := c.Get(base + "/status")
	if err != nil {
		return st, err
	}
	defer resp.Body.Close()
	return st, json.NewDecoder(resp.Body).Decode(&st)
}

// ours lists what the router's kernel holds of us.
func (s *site) ours() (left []string) {
	s.t.Helper()
	for _, argv := range [][]string{{"ip", "-6", "route", "show", "proto", "92"}, {"ip", "-6", "neigh", "show", "nud", "permanent"}, {"ip", "-6", "-o", "addr", "show", "dev", "lo", "to", space.AS.String()}} {
		for line := range strings.Lines(s.router.Run(s.t, argv...)) {
			if !strings.Contains(line, "ff02:") {
				left = append(left, strings.TrimSpace(line))
			}
		}
	}
	pins, _ := filepath.Glob(nstest.BPFFS + "/router-*")
	return append(left, pins...)
}

// TestKilledRouterForgetsNothing is the life of a router: rules, kill -9, adoption, reconciliation, end.
func TestKilledRouterForgetsNothing(t *testing.T) {
	safety.Test(t, safety.Record)
	s := newSite(t)
	other := sid.ServiceID{SS: 1, Suffix: 0x10001}
	p := start(t, s.router, s.cfg)
	c := s.controller.accept(t, own)
	if c.join.Name != "r1" || !c.join.Service || c.join.Generation != 0 {
		t.Errorf("joined as %v", c.join)
	}
	c.snapshot(7, s.rules(7, web, other))
	s.resolves(web, 1)
	s.resolves(other, 2)
	s.refuses(web, 81, 3, 4)

	p.Signal(syscall.SIGKILL)
	p.WaitEnd(t)
	s.resolves(web, 4)
	s.refuses(sid.ServiceID{SS: 9, Suffix: 0x10009}, 80, 5, 0)

	p = start(t, s.router, s.cfg)
	c = s.controller.accept(t, own)
	if c.join.Generation != 7 {
		t.Errorf("after kill -9 it holds generation %d, want 7", c.join.Generation)
	}
	if st, err := s.status(); err != nil || !st.Adopted || st.Services != 2 || st.Instances != 2 {
		t.Errorf("before the snapshot: %+v, %v; want two services adopted", st, err)
	}
	s.resolves(other, 6)
	c.snapshot(8, s.rules(8, web))
	s.resolves(web, 7)
	s.refuses(other, 80, 8, 0)
	c.delta(&apiv1.Rules{Generation: 9, Resolutions: []*apiv1.Resolution{{Ss: 1, Suffix: uint64(web.Suffix), Proto: 6, Port: 80}}})
	s.refuses(web, 80, 9, 4)

	p.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if left := s.ours(); len(left) > 0 {
		t.Errorf("left after SIGTERM:\n%s", strings.Join(left, "\n"))
	}
}

func TestSnapshotRemovesRoutesThatItDoesNotName(t *testing.T) {
	s := newSite(t)
	start(t, s.router, s.cfg)
	c := s.controller.accept(t, own)
	c.snapshot(1, s.rules(1, web))
	routes := func() string { return s.router.Run(t, "ip", "-6", "route", "show", "proto", "92", "type", "unicast") }
	if got := routes(); !strings.Contains(got, client.String()) || !strings.Contains(got, server.String()) {
		t.Errorf("routes:\n%s", got)
	}
	s.router.Run(t, "ip", "-6", "route", "add", "2001:db8::/32", "dev", "to-client")
	rules := s.rules(2, web)
	rules.Routes = rules.Routes[:1]
	c.snapshot(2, rules)
	if got := routes(); strings.Contains(got, client.String()) || !strings.Contains(got, server.String()) {
		t.Errorf("after a snapshot without the client:\n%s", got)
	}
	if got := s.router.Run(t, "ip", "-6", "route", "show", "2001:db8::/32"); got == "" {
		t.Error("a route that is not ours was removed")
	}
}

// TestRoutesComeBackWithTheirPort: the kernel forgets IPv6 routes when an interface goes down.
func TestRoutesComeBackWithTheirPort(t *testing.T) {
	s := newSite(t)
	start(t, s.router, s.cfg)
	s.controller.accept(t, own).snapshot(1, s.rules(1, web))
	s.router.Down(t, "to-server")
	s.router.Up(t, "to-server")
	nstest.Wait(t, "routes of to-server in the router", func() error {
		if out := s.router.Run(t, "ip", "-6", "route", "show", "dev", "to-server", "proto", "92"); !strings.Contains(out, server.String()) {
			return errors.New("no route to the server: " + out)
		}
		return nil
	})
	s.resolves(web, 1)
}

func TestProbingTellsSuspectGoneAndBack(t *testing.T) {
	s := newSite(t)
	start(t, s.router, s.cfg)
	c := s.controller.accept(t, own)
	c.snapshot(1, s.rules(1, web))
	c.state(server, liveness.Up, "probes")
	s.silent.Store(true)
	c.state(server, liveness.Suspect, "probes")
	c.state(server, liveness.Gone, "probes")
	s.silent.Store(false)
	c.state(server, liveness.Up, "probes")
	s.server.Down(t, "up")
	c.state(server, liveness.Gone, "carrier")
	close(c.end) // a new session gets the full set
	c = s.controller.accept(t, own)
	c.state(server, liveness.Gone, "carrier")
}

// TestHostsReachTheControllerOverTheirLink: a host has its link-local address and HELLO, nothing else.
func TestHostsReachTheControllerOverTheirLink(t *testing.T) {
	s := newSite(t)
	hears := s.client.ListenPacket(t, "udp6", fmt.Sprintf("[::]:%d", sid.Port))
	start(t, s.router, s.cfg)
	s.controller.accept(t, own)
	hello, from := heard(t, hears)
	if !hello.Service || !hello.Relay || hello.Name != "r1" || hello.Port != "to-client" {
		t.Errorf("HELLO %+v", hello)
	}
	e, err := api.ParseEndpoint(fmt.Sprintf("http://[%s%%up]:%d", from, hello.RelayPort))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := s.client.Dial("tcp6", e.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	conn.(*net.TCPConn).CloseWrite()
	answer := make([]byte, 8)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1" {
		t.Errorf("through the relay: %q, %v; want an answer of the controller", answer, err)
	}
	if outside, err := s.router.Dial("tcp6", fmt.Sprintf("[fd00::1]:%d", hello.RelayPort)); err == nil {
		defer outside.Close()
		if n, err := outside.Read(answer); err == nil {
			t.Errorf("the relay serves an address that is not link-local: %q", answer[:n])
		}
	}
}

func heard(t *testing.T, c net.PacketConn) (wire.Hello, netip.Addr) {
	t.Helper()
	buf := make([]byte, wire.MaxLen)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := wire.Parse(buf[:n]); err == nil {
			if h, ok := m.(wire.Hello); ok {
				a, _ := netip.AddrFromSlice(from.(*net.UDPAddr).IP)
				return h, a
			}
		}
	}
}

// TestRoutersFindEachOther over a link, and over a router that knows nothing of Scaffold.
func TestRoutersFindEachOther(t *testing.T) {
	a, b, plain, manager := nstest.New(t, "a"), nstest.New(t, "b"), nstest.New(t, "plain"), nstest.New(t, "controller")
	nstest.Veth(t, a, "direct", b, "direct")
	nstest.Veth(t, a, "far", plain, "to-a")
	nstest.Veth(t, b, "far", plain, "to-b")
	plain.Forward(t)
	blockA, blockB := space.Locator(0x100), space.Locator(0x200)
	plain.Route(t, "fd5d:0:1:100::/56", a.LinkLocal(t, "far").String(), "to-a")
	plain.Route(t, "fd5d:0:1:200::/56", b.LinkLocal(t, "far").String(), "to-b")
	var controllers [2]*fakeController
	for i, ns := range []*nstest.NS{a, b} {
		nstest.Veth(t, ns, "mgmt", manager, "m"+ns.Name)
		ns.Addr(t, "mgmt", fmt.Sprintf("fd00:%d::1/64", i))
		manager.Addr(t, "m"+ns.Name, fmt.Sprintf("fd00:%d::2/64", i))
		controllers[i] = newController(t, manager.Listen(t, "tcp6", fmt.Sprintf("[fd00:%d::2]:0", i)))
	}
	daemon := func(ns *nstest.NS, c *fakeController, peer, via string) *nstest.Proc {
		return start(t, ns, Config{Name: ns.Name, Controllers: []string{c.endpoint}, Management: "mgmt", Socket: filepath.Join(t.TempDir(), "s"),
			Links: []Link{{Peer: peer, Port: "far", Via: netip.MustParseAddr(via)}}})
	}
	daemon(a, controllers[0], "b", plain.LinkLocal(t, "to-a").String())
	sa := controllers[0].accept(t, blockA)
	sa.neighbour(&apiv1.Neighbour{Port: "far", Peer: "b", Up: true}) // believed in before it was heard
	pb := daemon(b, controllers[1], "a", plain.LinkLocal(t, "to-b").String())
	sb := controllers[1].accept(t, blockB)
	if via := sa.neighbour(&apiv1.Neighbour{Port: "direct", Peer: "b", PeerPort: "direct", Up: true}); via != b.LinkLocal(t, "direct").String() {
		t.Errorf("b is reached via %s", via)
	}
	far := func(s *fakeSession, prefix string, via *nstest.NS, dev string) {
		s.snapshot(1, &apiv1.Rules{Generation: 1, Routes: []*apiv1.Route{{Prefix: prefix, Via: via.LinkLocal(t, dev).String(), Port: "far"}}})
	}
	far(sa, "fd5d:0:1:200::/56", plain, "to-a")
	far(sb, "fd5d:0:1:100::/56", plain, "to-b")
	sa.neighbour(&apiv1.Neighbour{Port: "far", Peer: "b", PeerPort: "far", Up: true})
	a.Down(t, "direct")
	sa.neighbour(&apiv1.Neighbour{Port: "direct", Peer: "b", PeerPort: "direct", Up: false, Reason: "carrier"})
	pb.Signal(syscall.SIGKILL)
	sa.neighbour(&apiv1.Neighbour{Port: "far", Peer: "b", PeerPort: "far", Up: false, Reason: "hello"})
}

// A router that said so answers at the first try; that it has a controller is another thing.
func TestARouterIsReadyWhenItSaysSo(t *testing.T) {
	next := nstest.Manager(t)
	cfg := Config{Name: "r1", Controllers: []string{"http://[::1]:9"}, Socket: filepath.Join(t.TempDir(), "s")}
	start(t, nstest.New(t, "ready"), cfg)
	if got := next(); got != "READY=1" {
		t.Fatalf("the service manager hears %q", got)
	}
	c, base, err := api.Dial("unix:" + cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	resp, err := c.Get(base + "/status")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("/status: %s", resp.Status)
	}
}

// TestControllerAwayIsSaidOnce also looks at the health.
func TestControllerAwayIsSaidOnce(t *testing.T) {
	ns := nstest.New(t, "lonely")
	cfg := Config{Name: "r1", Controllers: []string{"http://[::1]:9"}, Socket: filepath.Join(t.TempDir(), "s")}
	p := start(t, ns, cfg)
	p.WaitFor(t, "controller unreachable")
	c, base, err := api.Dial("unix:" + cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	nstest.Wait(t, "/healthz of routerd", func() error {
		resp, err := c.Get(base + "/healthz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != 503 {
			return fmt.Errorf("health is %s, want it to say that the controller is away", resp.Status)
		}
		return nil
	})
	if n := strings.Count(p.Output(), "controller unreachable"); n != 1 {
		t.Errorf("said %d times that the controller is away:\n%s", n, p.Output())
	}
}
