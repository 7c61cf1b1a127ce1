package host

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// A testGuest is a namespace behind a host's edge.
type testGuest struct {
	*nstest.NS
	number uint16
	vid    netip.Addr
}

// guest puts a namespace behind the host's edge, set up as the daemon does it.
func (h *testHost) guest(t *testing.T, name string, number uint16) *testGuest {
	t.Helper()
	return h.guestWith(t, name, number, false)
}

// guestWith says whether the guest's listeners on the wildcard address serve.
func (h *testHost) guestWith(t *testing.T, name string, number uint16, wildcard bool) *testGuest {
	t.Helper()
	g := &testGuest{NS: nstest.New(t, name), number: number, vid: space.Identity(uint64(0x1000+number) + uint64(h.locator)<<16&0xffffff0000)}
	nstest.Veth(t, h.NS, name, g.NS, "scaffold0")
	h.Sysctl(t, "net/ipv6/conf/"+name+"/disable_ipv6", "1")
	g.Sysctl(t, "net/ipv6/ip_nonlocal_bind", "1")
	g.Addr(t, "scaffold0", g.vid.String()+"/128")
	up, lo, gw := g.Index(t, "scaffold0"), g.Index(t, "lo"), net.ParseIP("fe80::1")
	must(t, g.Link().NeighSet(&netlink.Neigh{LinkIndex: up, IP: gw, HardwareAddr: h.MAC(t, name), State: netlink.NUD_PERMANENT}))
	for _, r := range []netlink.Route{
		{Dst: ipNet(space.AS), Gw: gw, LinkIndex: up, Src: g.vid.AsSlice(), Flags: int(netlink.FLAG_ONLINK)},
		{Dst: ipNet(space.Services), Gw: gw, LinkIndex: up, Src: g.vid.AsSlice(), Flags: int(netlink.FLAG_ONLINK)},
		{Dst: ipNet(space.Services), LinkIndex: lo, Table: servicesTable, Type: unix.RTN_LOCAL},
		{Dst: ipNet(netip.PrefixFrom(g.vid, 128)), LinkIndex: lo, Table: servicesTable, Type: unix.RTN_LOCAL},
	} {
		must(t, g.Link().RouteReplace(&r))
	}
	arriving, marked := netlink.NewRule(), netlink.NewRule()
	arriving.IifName, marked.Mark = "scaffold0", Mark
	for _, r := range []*netlink.Rule{arriving, marked} {
		r.Family, r.Table, r.Priority = unix.AF_INET6, servicesTable, 100
		must(t, g.Link().RuleAdd(r))
	}
	h.Do(func() {
		must(t, h.edge.AddGuest(Guest{Number: number, Link: h.Index(t, name), Identity: g.vid, Wildcard: wildcard}, func(f func() error) (err error) {
			g.Do(func() { err = f() })
			return err
		}))
	})
	must(t, h.edge.PreferUplink(h.Index(t, "up")))
	return g
}

// greets answers each connection with the guest's name and then returns what it reads.
func (g *testGuest) greets(t *testing.T, addr string) {
	go greet(g.Listen(t, "tcp6", addr), g.Name)
}

// greet answers each connection with a name and then returns what it reads.
func greet(l net.Listener, name string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { defer c.Close(); io.WriteString(c, name); io.Copy(c, c) }()
	}
}

// dialFrom is Dial with an end: a packet that is lost shows as a timeout.
func dialFrom(n *nstest.NS, addr string) (c net.Conn, err error) {
	n.Do(func() { c, err = net.DialTimeout("tcp6", addr, nstest.Deadline/10) })
	return c, err
}

// ask connects from the namespace and returns who answered.
func ask(t *testing.T, n *nstest.NS, addr string) string {
	t.Helper()
	c, err := dialFrom(n, addr)
	must(t, err)
	defer c.Close()
	within(t, c)
	must(t, c.(*net.TCPConn).CloseWrite())
	b, err := io.ReadAll(c)
	must(t, err)
	return string(b)
}

func TestGuestsOfTwoHostsTalkByName(t *testing.T) { guestsTalk(t, Config{}) }

func TestGuestsTalkByClassicFilters(t *testing.T) { guestsTalk(t, Config{Classic: true}) }

func guestsTalk(t *testing.T, cfg Config) {
	n := newNetwork(t)
	a, b := n.host(t, "host-a", 1, cfg), n.host(t, "host-b", 2, cfg)
	counters(t, a, b)
	client, server := a.guest(t, "client", 1), b.guest(t, "server", 1)
	n.serve(t, webTCP, b)
	must(t, b.edge.SetOwners(webTCP, []uint16{1}))
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	check := n.sniff(t, a)
	c, err := dialFrom(client.NS, at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	if local := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); local != client.vid {
		t.Errorf("the client's socket has %v, want its guest's identity %v", local, client.vid)
	}
	thereAndBack(t, c, 2<<20)
	check()
	for h, role := range map[*testHost]Role{a: Client, b: Server} {
		must(t, h.edge.Flows(func(f Flow) bool {
			if f.Role != role || f.Tuple.Guest != 1 {
				t.Errorf("%s: flow of guest %d: %+v", h.Name, f.Tuple.Guest, f)
			}
			return true
		}))
	}
}

// thereAndBack sends so many bytes to an echo server and wants them back.
func thereAndBack(t *testing.T, c net.Conn, n int) {
	t.Helper()
	go func() { c.Write(make([]byte, n)); c.(*net.TCPConn).CloseWrite() }()
	if got, err := io.Copy(io.Discard, c); got != int64(n) || err != nil {
		t.Errorf("%d of %d bytes came back, error %v", got, n, err)
	}
}

// Where several of one host serve the same, each gets its share, and each can be a client of the others.
func TestGuestsOfOneHostShareAName(t *testing.T) {
	n := newNetwork(t)
	h := n.host(t, "host", 1, Config{})
	counters(t, h)
	n.serve(t, webTCP, h)
	one, two := h.guest(t, "one", 1), h.guest(t, "two", 2)
	must(t, h.edge.SetOwners(webTCP, []uint16{1, 2}))
	one.greets(t, at(webAddr, 80))
	two.greets(t, at(webAddr, 80))
	seen := map[string]int{}
	for range 40 {
		for _, from := range []*nstest.NS{one.NS, two.NS, h.NS} {
			seen[ask(t, from, at(webAddr, 80))]++
		}
	}
	if seen["one"] < 30 || seen["two"] < 30 || len(seen) != 2 {
		t.Errorf("of 120 connections: %v, want about half each", seen)
	}
	must(t, h.edge.SetOwners(webTCP, []uint16{2}))
	for range 10 {
		if who := ask(t, one.NS, at(webAddr, 80)); who != "two" {
			t.Fatalf("%s answered, want two alone", who)
		}
	}
}

func TestAGuestsPingsAndLargeDatagramsArrive(t *testing.T) {
	n := newNetwork(t)
	a, b := n.host(t, "host-a", 1, Config{}), n.host(t, "host-b", 2, Config{})
	counters(t, a, b)
	client, server := a.guest(t, "client", 1), b.guest(t, "server", 1)
	n.serve(t, dnsUDP, b)
	must(t, b.edge.SetOwners(dnsUDP, []uint16{1}))
	must(t, b.edge.SetOwners(sid.Triple{Service: dns}, []uint16{1}))
	s := server.ListenPacket(t, "udp6", at(dnsAddr, 53))
	go func() {
		buf := make([]byte, 1<<16)
		for {
			k, from, err := s.ReadFrom(buf)
			if err != nil {
				return
			}
			s.WriteTo(buf[:k], from)
		}
	}()
	c, err := client.Dial("udp6", at(dnsAddr, 53))
	must(t, err)
	defer c.Close()
	within(t, c)
	for _, size := range []int{100, 4000, 20000} {
		must1(c.Write(make([]byte, size)))(t)
		if k := must1(c.Read(make([]byte, 1<<16)))(t); k != size {
			t.Errorf("%d bytes came back of %d", k, size)
		}
	}
	// A datagram to a port without a socket is refused by the guest's kernel, and its program hears it.
	must(t, b.edge.Admit(sid.Triple{Service: dns, Proto: sid.UDP, Port: 54}))
	client.Run(t, "ping", "-6", "-c", "2", "-i", "0.05", "-W", "10", dnsAddr.String())
}

func must1[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); must(t, err); return v }
}

// What a guest may not send stays at its link: it is nobody else, and speaks no messages between hosts.
func TestAGuestCannotPoseAsAnybodyElse(t *testing.T) {
	safety.Test(t, safety.Door)
	n := newNetwork(t)
	h := n.host(t, "host", 1, Config{})
	g := h.guest(t, "guest", 1)
	other := h.guest(t, "other", 2)
	wire := n.router.Frames(t, h.Name)
	for _, from := range []netip.Addr{other.vid, h.vid, h.locator.Host(), h.locator.Addr(0x8000000000000001), there.Host()} {
		g.Addr(t, "scaffold0", from.String()+"/128")
		for _, to := range []netip.Addr{webAddr, there.Host(), peerP} {
			before := mustCount(t, h)
			g.Do(func() {
				c, err := net.DialUDP("udp6", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, sid.Port)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, sid.Port)))
				must(t, err)
				c.Write([]byte("hello"))
				c.Close()
			})
			nstest.Wait(t, "drop_guest of the edge", func() error {
				if mustCount(t, h) == before {
					return errNotYet
				}
				return nil
			})
		}
	}
	for _, f := range wire.Drain(t) {
		if len(f) > 54 && f[12] == 0x86 && f[13] == 0xdd && f[20] == 17 {
			t.Errorf("on the wire: %x", f)
		}
	}
}

var errNotYet = os.ErrDeadlineExceeded

func mustCount(t *testing.T, h *testHost) uint64 {
	t.Helper()
	all, err := h.edge.Counters()
	must(t, err)
	return all["drop_guest"]
}

// A process of a guest that is killed in the middle of an answer cuts it off, as one of the host does.
func TestATruncatedAnswerOfAGuestIsAnError(t *testing.T) {
	n := newNetwork(t)
	a, b := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, a, b)
	g := b.guest(t, "guest", 7)
	n.serve(t, webTCP, b)
	must(t, b.edge.SetOwners(webTCP, []uint16{7}))
	hooks, err := sockets.Open(nstest.BPFFS)
	must(t, err)
	t.Cleanup(func() { hooks.Close() })
	g.Do(func() {
		s, err := hooks.Join(space.Services)
		must(t, err)
		t.Cleanup(func() { s.Close(false) })
	})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+at(webAddr, 80))
	p := g.StartCmd(t, cmd)
	p.WaitFor(t, "listening")
	c, err := a.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	io.WriteString(c, "3000 \"kill\"\n")
	if b, err := io.ReadAll(c); len(b) != 3000 || err == nil {
		t.Errorf("%d bytes and error %v, want 3000 and a reset", len(b), err)
	}
}
