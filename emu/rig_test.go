package emu

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A rig is one link between two namespaces with the addresses fd00::1 and fd00::2.
type rig struct {
	a, b *nstest.NS
	*Net
	refused uint64 // frames that b did not take from a before it was up
}

func newRig(t testing.TB, p Params) *rig {
	t.Helper()
	if runtime.GOMAXPROCS(0) < 4 {
		runtime.GOMAXPROCS(4) // the worker does not give its processor away
	}
	r := &rig{a: nstest.New(t, "a"), b: nstest.New(t, "b")}
	back := p
	p.Seed, back.Seed = Seeds(p.Seed)[0], Seeds(p.Seed)[1]
	r.Net = New(Options{})
	t.Cleanup(func() { r.Close() })
	a, b := r.edge(t, r.a), r.edge(t, r.b)
	if _, err := r.Link(a, b, [2]Params{p, back}); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	r.address(t)
	return r
}

// edge is the interface eth0 of a namespace.
func (r *rig) edge(t testing.TB, n *nstest.NS) *Edge {
	t.Helper()
	e, err := r.Edge(End{Netns: fmt.Sprintf("/proc/self/fd/%d", n.Fd()), Dev: "eth0", MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// address gives both ends their addresses.
func (r *rig) address(t testing.TB) {
	t.Helper()
	for i, n := range []*nstest.NS{r.a, r.b} {
		n.Sysctl(t, "net/ipv6/conf/eth0/addr_gen_mode", "1")
		n.Addr(t, "eth0", fmt.Sprintf("fd00::%d/64", i+1))
		n.Up(t, "eth0")
	}
	r.refused = r.line(t).Refused // the kernel of a spoke before b was up
}

// line are the present statistics from a to b.
func (r *rig) line(t testing.TB) LineStats {
	t.Helper()
	all, err := r.links[0].Stats()
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// dial connects from a to b over TCP and returns both ends.
func (r *rig) dial(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l := r.b.Listen(t, "tcp6", "[fd00::2]:7")
	client, err := r.a.Dial("tcp6", "[fd00::2]:7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}
