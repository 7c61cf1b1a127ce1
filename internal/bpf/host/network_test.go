package host

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// servicesTable is where service addresses are local: for what arrives, never for what is sent.
const servicesTable = 23727

// A testNetwork is one router and the hosts at it, each in a namespace.
type testNetwork struct {
	router   *nstest.NS
	resolver *router.Resolver
}

// A testHost is a host with its edge on interface "up"; its port at the router is named after it.
type testHost struct {
	*nstest.NS
	edge    *Edge
	locator sid.Locator
	vid     netip.Addr
	handled <-chan struct{} // closed once nobody reads the edge's events any more, see converse
}

func newNetwork(t testing.TB) *testNetwork {
	t.Helper()
	n := &testNetwork{router: nstest.New(t, "edge-router")}
	n.router.Forward(t)
	n.router.Do(func() {
		var err error
		if n.resolver, err = router.Open(router.Config{Space: space}); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { n.resolver.Close(false) })
	must(t, n.resolver.SetLocator(space.Locator(0x100)))
	must(t, n.resolver.Commit(1))
	return n
}

// host joins a host with the given number.
func (n *testNetwork) host(t testing.TB, name string, number uint16, cfg Config) *testHost {
	t.Helper()
	h := &testHost{NS: nstest.New(t, name), locator: space.Locator(0x100 | number), vid: space.Identity(uint64(number))}
	nstest.Veth(t, h.NS, "up", n.router, name)
	n.router.Route(t, h.locator.Prefix().String(), h.LinkLocal(t, "up").String(), name)
	h.routes(t, n.router.LinkLocal(t, name))
	cfg.Space, cfg.Identity = space, h.vid
	h.Do(func() {
		var err error
		if h.edge, err = Open(cfg); err != nil {
			t.Fatalf("%+v", err)
		}
		must(t, h.edge.Attach(h.Index(t, "up")))
	})
	t.Cleanup(func() { h.edge.Close(false) })
	router, _ := netip.AddrFromSlice(n.router.LinkLocal(t, name))
	must(t, h.edge.SetUplink(h.Index(t, "up"), Uplink{Locator: h.locator, MTU: 1500, Router: router}))
	must(t, h.edge.AcceptLocator(h.locator, true))
	n.router.Do(func() { must(t, n.resolver.Attach(n.router.Index(t, name))) })
	return h
}

// routes is what the daemon sets up on a host; a point-to-point uplink needs no gateway.
func (h *testHost) routes(t testing.TB, gw net.IP) {
	t.Helper()
	h.Sysctl(t, "net/ipv6/ip_nonlocal_bind", "1")
	h.Addr(t, "lo", h.vid.String()+"/128")
	h.Addr(t, "up", h.locator.Host().String()+"/128")
	up, lo := h.Index(t, "up"), h.Index(t, "lo")
	services := ipNet(space.Services)
	for _, r := range []netlink.Route{
		{Dst: ipNet(space.AS), Gw: gw, LinkIndex: up},
		{Dst: services, Gw: gw, LinkIndex: up, Src: h.vid.AsSlice()},
		{Dst: services, LinkIndex: lo, Table: servicesTable, Type: unix.RTN_LOCAL},
		{Dst: ipNet(netip.PrefixFrom(h.vid, 128)), LinkIndex: lo, Table: servicesTable, Type: unix.RTN_LOCAL},
	} {
		must(t, h.Link().RouteReplace(&r))
	}
	arriving, marked := netlink.NewRule(), netlink.NewRule()
	arriving.IifName, marked.Mark = "up", Mark
	for _, r := range []*netlink.Rule{arriving, marked} {
		r.Family, r.Table, r.Priority = unix.AF_INET6, servicesTable, 100
		must(t, h.Link().RuleAdd(r))
	}
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}
}

// serve admits the triple at the hosts and lets the router find them.
func (n *testNetwork) serve(t testing.TB, triple sid.Triple, hosts ...*testHost) {
	t.Helper()
	targets := targetsOf(hosts...)
	for _, h := range hosts {
		must(t, h.edge.Admit(triple))
	}
	must(t, n.resolver.SetService(triple.Service, router.Service{Instances: uint32(len(hosts))}))
	must(t, n.resolver.SetTable(triple, targets))
	must(t, n.resolver.SetTable(sid.Triple{Service: triple.Service}, targets))                      // ping
	must(t, n.resolver.SetTable(sid.Triple{Service: triple.Service, Proto: triple.Proto}, targets)) // fragments
}

func targetsOf(hosts ...*testHost) (targets []resolve.Target) {
	for _, h := range hosts {
		targets = append(targets, resolve.Target{Locator: h.locator, Weight: 1})
	}
	return targets
}

// sniff watches a host's port at the router. The returned function fails the test if a service or identity
// address was a source on the wire; so does an empty wire.
func (n *testNetwork) sniff(t testing.TB, h *testHost) (check func()) {
	t.Helper()
	frames := n.router.Frames(t, h.Name)
	return func() {
		t.Helper()
		ours := 0
		for _, f := range frames.Drain(t) {
			if len(f) < 54 || f[12] != 0x86 || f[13] != 0xdd {
				continue
			}
			src := netip.AddrFrom16([16]byte(f[22:38]))
			if space.Services.Contains(src) || space.Identities.Contains(src) {
				t.Errorf("on the wire of %s: source %v", h.Name, src)
			}
			if space.AS.Contains(src) {
				ours++
			}
		}
		if ours == 0 {
			t.Errorf("nothing of ours was on the wire of %s", h.Name)
		}
	}
}
