package host

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

// drawAccess draws prefixes near each other: some cover others, and the addresses of the tests.
func drawAccess(r *rapid.T) resolve.AccessList {
	if rapid.IntRange(0, 3).Draw(r, "everybody") == 0 {
		return nil
	}
	prefix := rapid.Custom(func(t *rapid.T) resolve.Prefix {
		l := rapid.SampledFrom([]sid.Locator{here, there, other, 0, 1 << 63}).Draw(t, "locator")
		return resolve.NewPrefix(l^sid.Locator(rapid.IntRange(0, 3).Draw(t, "near")), rapid.SampledFrom([]int{64, 64, 63, 62, 56, 48, 1, 0}).Draw(t, "bits"))
	})
	return resolve.NewAccessList(rapid.SliceOfN(prefix, 0, 6).Draw(r, "prefixes"))
}

// The map is asked about any source, after any change; core/resolve says what is right.
func TestTheEdgeLetsInWhomTheAccessListAllows(t *testing.T) {
	safety.Test(t, safety.Door)
	w := newWorld(t)
	rapid.Check(t, func(r *rapid.T) {
		w.reset(r)
		for range rapid.IntRange(1, 4).Draw(r, "changes") {
			g := drawAccess(r)
			w.access(web, g)
			for range 4 {
				from := rapid.SampledFrom([]sid.Locator{there, other, there ^ 1, there ^ 2, here ^ 3}).Draw(r, "from")
				src := from.Addr(0x8000000000000000 | rapid.Uint64().Draw(r, "socket"))
				o := w.arrive(bpftest.Packet{Src: src, Dst: here.Addr(uint64(web.Suffix)), Proto: bpftest.TCP, SPort: 4000, DPort: 80, Flags: bpftest.SYN}.Bytes())
				if got := o.Verdict == flow.Pass; got != g.Allows(from) {
					r.Fatalf("from %v: passes is %v, the list %v says %v", from, got, g, g.Allows(from))
				}
			}
		}
	})
}

func TestWhoMayNotConnectIsToldAtOnceAndHoweverItAsks(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	must(t, server.edge.SetAccess(web, resolve.NewAccessList([]resolve.Prefix{resolve.NewPrefix(client.locator, 64)})))
	c, err := client.dial(at(webAddr, 80))
	must(t, err)
	must(t, server.edge.SetAccess(web, resolve.NewAccessList(nil)))
	if _, err := client.dial(at(webAddr, 80)); !errors.Is(err, syscall.EACCES) {
		t.Errorf("who may not connect gets %v, want EACCES", err)
	}
	direct := netip.AddrPortFrom(server.locator.Addr(uint64(web.Suffix)), 80).String()
	if _, err := client.dial(direct); err == nil {
		t.Error("who writes the server's locator itself gets through")
	}
	within(t, c)
	if _, err := c.Write([]byte("still")); err != nil {
		t.Errorf("the edge ends a flow: %v", err)
	}
	if _, err := c.Read(make([]byte, 5)); err != nil {
		t.Errorf("the edge ends a flow: %v", err)
	}
	must(t, server.edge.SetAccess(web, nil))
	again, err := client.dial(at(webAddr, 80))
	must(t, err)
	for _, c := range []net.Conn{c, again} {
		c.Close()
	}
}

func TestAnAdoptedEdgeKeepsItsAccessLists(t *testing.T) {
	safety.Test(t, safety.Door)
	pin := filepath.Join(nstest.BPFFS, "host-access")
	first := newEdge(t, Config{Pin: pin})
	g := resolve.NewAccessList([]resolve.Prefix{resolve.NewPrefix(there, 64), resolve.NewPrefix(other, 48)})
	must(t, first.SetAccess(web, g))
	must(t, first.SetAccess(dns, resolve.AccessList{}))
	must(t, first.Close(true))
	second, err := Open(Config{Space: space, Pin: pin})
	must(t, err)
	defer second.Close(false)
	if second.Access(web) == nil || second.Access(dns) == nil || second.Access(absent) != nil {
		t.Errorf("the lists are %v", second.access)
	}
	must(t, second.SetAccess(web, resolve.NewAccessList(g[:1])))
	var key edgeAccessKey
	var one uint8
	n := 0
	for it := second.maps.Guards.Iterate(); it.Next(&key, &one); {
		n++
	}
	if n != 1 {
		t.Errorf("%d prefixes are left, want 1", n)
	}
}
