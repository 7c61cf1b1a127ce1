package emu

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
)

// A rig is one link between two namespaces with the addresses fd00::1 and fd00::2.
type rig struct {
	a, b *nstest.NS
	*Engine
}

func newRig(t testing.TB, p Params) *rig {
	t.Helper()
	if runtime.GOMAXPROCS(0) < 4 {
		runtime.GOMAXPROCS(4) // the worker does not give its processor away
	}
	r := &rig{a: nstest.New(t, "a"), b: nstest.New(t, "b")}
	back := p
	p.Seed, back.Seed = Seeds(p.Seed)[0], Seeds(p.Seed)[1]
	path := func(n *nstest.NS) string { return fmt.Sprintf("/proc/self/fd/%d", n.Fd()) }
	var err error
	r.Engine, err = Start(Config{Links: []LinkConfig{{
		Ends:   [2]End{{Netns: path(r.a), Dev: "eth0", MTU: 1500}, {Netns: path(r.b), Dev: "eth0", MTU: 1500}},
		Params: [2]Params{p, back},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	r.address(t)
	return r
}

// address gives both ends their addresses.
func (r *rig) address(t testing.TB) {
	t.Helper()
	for i, n := range []*nstest.NS{r.a, r.b} {
		n.Sysctl(t, "net/ipv6/conf/eth0/addr_gen_mode", "1")
		n.Addr(t, "eth0", fmt.Sprintf("fd00::%d/64", i+1))
		n.Up(t, "eth0")
	}
}

// line are the present statistics from a to b.
func (r *rig) line(t testing.TB) LineStats {
	t.Helper()
	all, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Lines[0]
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
