package forward_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// A path is n routers between two namespaces: a with fd0a::1 and 10.0.1.1, b with fd0b::1 and 10.0.2.1. The routers'
// addresses are those of a line, and their ends of the outer links fd0a::ff, 10.0.1.254, fd0b::ff and 10.0.2.254.
type path struct {
	*emu.Net
	a, b    *nstest.NS
	routers []*forward.Forwarder
	nodes   []*emu.Router
}

func edge(t testing.TB, n *emu.Net, ns *nstest.NS, dev string, taken bool) *emu.Edge {
	t.Helper()
	e, err := n.Edge(emu.End{Netns: fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), Dev: dev, Taken: taken})
	must(t, err)
	return e
}

func newNet(t testing.TB) *emu.Net {
	t.Helper()
	if runtime.GOMAXPROCS(0) < 4 {
		runtime.GOMAXPROCS(4) // the shard does not give its processor away
	}
	n := emu.New(emu.Options{Shards: 1, Log: t.Logf})
	t.Cleanup(func() { n.Close() })
	return n
}

func newPath(t testing.TB, n int, p emu.Params, change func(i int, c *forward.Config)) *path {
	t.Helper()
	h := &path{a: nstest.New(t, "a"), b: nstest.New(t, "b")}
	h.Net = newNet(t)
	h.build(t, n, p, change)
	must(t, h.Start())
	for i, ns := range []*nstest.NS{h.a, h.b} {
		host(t, ns, "eth0", []string{"fd0a::1/64", "fd0b::1/64"}[i], []string{"10.0.1.1/24", "10.0.2.1/24"}[i],
			[]string{"fd0a::ff", "fd0b::ff"}[i], []string{"10.0.1.254", "10.0.2.254"}[i])
	}
	return h
}

// host gives an interface addresses and default routes.
func host(t testing.TB, ns *nstest.NS, dev, six, four, via6, via4 string) {
	t.Helper()
	ns.Sysctl(t, "net/ipv6/conf/"+dev+"/addr_gen_mode", "1")
	ns.Addr(t, dev, six)
	ns.Addr(t, dev, four)
	ns.Up(t, dev)
	for dst, via := range map[string]string{"::/0": via6, "0.0.0.0/0": via4} {
		_, prefix, _ := net.ParseCIDR(dst)
		must(t, ns.Link().RouteReplace(&netlink.Route{LinkIndex: ns.Index(t, dev), Dst: prefix, Gw: net.ParseIP(via)}))
	}
}

func (h *path) build(t testing.TB, n int, p emu.Params, change func(i int, c *forward.Config)) {
	t.Helper()
	var last emu.Node = edge(t, h.Net, h.a, "eth0", false)
	for i := range n {
		c := forward.Config{Addresses: []netip.Addr{addr(fmt.Sprintf("fd00::%x", i+1)), addr(fmt.Sprint("10.9.0.", i+1))}, Ports: make([]forward.PortConfig, 2)}
		if i == 0 {
			c.Ports[0].Addresses = []netip.Prefix{prefix("fd0a::ff/64"), prefix("10.0.1.254/24")}
		}
		if i == n-1 {
			c.Ports[1].Addresses = []netip.Prefix{prefix("fd0b::ff/64"), prefix("10.0.2.254/24")}
		}
		if change != nil {
			change(i, &c)
		}
		f, err := forward.New(c)
		must(t, err)
		must(t, f.SetRoutes([]forward.Route{
			forward.To(prefix("fd0a::/16"), 0), forward.To(prefix("fd0b::/16"), 1),
			forward.To(prefix("10.0.1.0/24"), 0), forward.To(prefix("10.0.2.0/24"), 1),
		}))
		next := h.Router(fmt.Sprint("r", i+1), f)
		_, err = h.Link(last, next, [2]emu.Params{p, p})
		must(t, err)
		h.routers, h.nodes, last = append(h.routers, f), append(h.nodes, next), next
	}
	_, err := h.Link(last, edge(t, h.Net, h.b, "eth0", false), [2]emu.Params{p, p})
	must(t, err)
}

// ping is what ping prints about one packet.
func ping(ns *nstest.NS, args ...string) string {
	out, _ := ns.Try(append([]string{"ping", "-n", "-c", "1", "-W", "10"}, args...)...)
	return out
}

// counters are read on the router's thread.
func counters(t testing.TB, n *emu.Net, r *emu.Router, f *forward.Forwarder) (c forward.Counters) {
	t.Helper()
	must(t, n.Do(r, func() { c = f.Counters() }))
	return c
}

// state is what the routers and the edges did, for messages.
func (h *path) state(t testing.TB) (s string) {
	t.Helper()
	for i, f := range h.routers {
		must(t, h.Do(h.nodes[i], func() { s += fmt.Sprintf("%+v %+v\n", h.nodes[i].Counters(), f.Counters()) }))
	}
	for _, e := range h.Edges() {
		must(t, e.Do(func() { s += fmt.Sprintf("%+v\n", e.Counters()) }))
	}
	return s + h.b.Run(t, "ip", "-s", "-6", "neigh")
}

func TestPingSeesEachRouter(t *testing.T) {
	const n = 4
	h := newPath(t, n, emu.Params{}, nil)
	for to, from := range map[string]string{"fd0b::1": "fd00::%x", "10.0.2.1": "10.9.0.%d"} {
		for hop := 1; hop <= n; hop++ {
			router := fmt.Sprintf(from, hop)
			if hop == 1 || hop == n { // these have an address at the link that the packet came by, or not
				router = map[string]string{"fd0b::11": "fd0a::ff", "10.0.2.11": "10.0.1.254"}[fmt.Sprint(to, hop)]
			}
			if router == "" {
				router = fmt.Sprintf(from, hop)
			}
			out := ping(h.a, "-W", "10", "-t", fmt.Sprint(hop), to)
			if !strings.Contains(out, "From "+router+" icmp_seq=1 Time") {
				t.Errorf("hop %d to %s: want %s in\n%s", hop, to, router, out)
			}
		}
		if out := ping(h.a, to); !strings.Contains(out, fmt.Sprintf("ttl=%d", 64-n)) {
			t.Errorf("%s: %s", to, out)
		}
		if out := ping(h.a, fmt.Sprintf(from, 1)); !strings.Contains(out, "ttl=64") {
			t.Errorf("the first router: %s", out)
		}
		if out := ping(h.b, strings.NewReplacer("b", "a", "2.1", "1.1").Replace(to)); !strings.Contains(out, "ttl=") {
			t.Errorf("back: %s", out)
		}
	}
}

func TestPathsHaveAnMTU(t *testing.T) {
	h := newPath(t, 3, emu.Params{}, func(i int, c *forward.Config) {
		if i == 1 {
			c.Ports = []forward.PortConfig{{MTU: 1400}, {MTU: 1400}}
		}
	})
	for to, want := range map[string]string{"fd0b::1": "mtu=1400", "10.0.2.1": "mtu = 1400"} {
		if out := ping(h.a, "-W", "10", "-M", "do", "-s", "1440", to); !strings.Contains(out, want) {
			t.Errorf("%s: want %s in\n%s", to, want, out)
		}
		if out := ping(h.a, "-M", "do", "-s", "1300", to); !strings.Contains(out, "ttl=61") {
			t.Errorf("%s: %s\n%s", to, out, h.state(t))
		}
		stream(t, h, to, 1<<20)
	}
	if out := ping(h.a, "-M", "dont", "-s", "3000", "10.0.2.1"); !strings.Contains(out, "ttl=61") {
		t.Errorf("fragments: %s", out)
	}
	if n := counters(t, h.Net, h.nodes[1], h.routers[1]); n.Told[forward.TooBig] == 0 || n.Fragmented == 0 {
		t.Errorf("%+v", n)
	}
}

// stream sends n pseudo-random bytes from a to b and compares what arrives.
func stream(t testing.TB, h *path, to string, n int) {
	t.Helper()
	l := h.b.Listen(t, "tcp", net.JoinHostPort(to, "7"))
	defer l.Close()
	client, err := h.a.Dial("tcp", net.JoinHostPort(to, "7"))
	must(t, err)
	defer client.Close()
	server, err := l.Accept()
	must(t, err)
	defer server.Close()
	sent := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	go func() {
		client.Write(sent)                                    // the reader tells
		client.(interface{ CloseWrite() error }).CloseWrite() // the reader tells
	}()
	server.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(server); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%s: %d of %d bytes arrived, equal: %t, %v", to, len(got), n, bytes.Equal(got, sent), err)
	}
}

func TestStreamsCrossSixteenRouters(t *testing.T) {
	for name, p := range map[string]emu.Params{"wires": {}, "links": {Rate: 1e10, Delay: time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			h := newPath(t, 16, p, nil)
			_, err := forward.Compile(h.Net)
			must(t, err)
			stream(t, h, "fd0b::1", 1<<24)
			stream(t, h, "10.0.2.1", 1<<22)
			must(t, h.Do(h.nodes[7], func() {
				if mode := h.routers[7].Mode(); mode != "class" {
					t.Errorf("mode %s", mode)
				}
			}))
		})
	}
}
