package forward_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

// A probe takes packets as they arrive.
type probe struct {
	router *emu.Router
	got    []seen
}

// seen is a packet from the IP header on, and what the descriptor said.
type seen struct {
	bytes []byte
	hop   uint8
	at    time.Duration
}

func (p *probe) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		one := &batch[i]
		b, ok := r.Edit(one)
		if !ok {
			panic("no memory")
		}
		p.got = append(p.got, seen{append([]byte(nil), b...), one.Hop, r.Now()})
		one.Port = emu.Drop
	}
}

// send lets packets out of the probe's port.
func (p *probe) send(t testing.TB, packets ...[]byte) {
	t.Helper()
	for _, b := range packets {
		one, ok := p.router.New(b)
		if !ok {
			t.Fatal("no memory")
		}
		p.router.Send(one, 0)
	}
}

// A line is two probes with n routers between. Probe 0 is fd0a::1 and 10.0.1.1, probe 1 fd0b::1 and 10.0.2.1;
// router i is fd00::i and 10.9.0.i, from 1. Port 0 leads to probe 0, port 1 to probe 1.
type line struct {
	*emu.Net
	ends    [2]*probe
	routers []*forward.Forwarder
	nodes   []*emu.Router
	now     time.Duration
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func newLine(t testing.TB, n int, change func(i int, c *forward.Config)) *line {
	t.Helper()
	l := &line{Net: emu.New(emu.Options{Virtual: true, Memory: emu.Memory{Small: 1 << 12, Large: 64}, Log: t.Logf})}
	t.Cleanup(func() { l.Close() })
	l.ends[0] = &probe{}
	last := l.Router("a", l.ends[0])
	l.ends[0].router = last
	for i := range n {
		c := forward.Config{Addresses: []netip.Addr{addr(fmt.Sprintf("fd00::%x", i+1)), addr(fmt.Sprint("10.9.0.", i+1))}}
		if change != nil {
			change(i, &c)
		}
		f, err := forward.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SetRoutes([]forward.Route{
			forward.To(prefix("fd0a::/16"), 0), forward.To(prefix("fd0b::/16"), 1),
			forward.To(prefix("10.0.1.0/24"), 0), forward.To(prefix("10.0.2.0/24"), 1),
		}); err != nil {
			t.Fatal(err)
		}
		for j := range n {
			if port := 0; i != j {
				if j > i {
					port = 1
				}
				must(t, f.Add(forward.To(prefix(fmt.Sprintf("fd00::%x/128", j+1)), port)))
				must(t, f.Add(forward.To(prefix(fmt.Sprintf("10.9.0.%d/32", j+1)), port)))
			}
		}
		next := l.Router(fmt.Sprint("r", i+1), f)
		l.join(t, last, next)
		l.routers, l.nodes, last = append(l.routers, f), append(l.nodes, next), next
	}
	l.ends[1] = &probe{}
	end := l.Router("b", l.ends[1])
	l.ends[1].router = end
	l.join(t, last, end)
	l.run(t)
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *line) join(t testing.TB, a, b emu.Node) {
	t.Helper()
	if _, err := l.Link(a, b, [2]emu.Params{}); err != nil {
		t.Fatal(err)
	}
}

// run lets everything happen.
func (l *line) run(t testing.TB) {
	t.Helper()
	l.now += time.Second
	must(t, l.Run(l.now))
}

// from0 sends a datagram from probe 0 to an address, with a hop limit and of so many bytes.
func (l *line) from0(t testing.TB, to string, hop uint8, size int) []byte {
	t.Helper()
	from := "fd0a::1"
	if addr(to).Is4() {
		from = "10.0.1.1"
	}
	b := traffic.Datagram(addr(from), addr(to), hop, 1024, size)
	l.ends[0].send(t, b)
	l.run(t)
	return b
}

func (s seen) String() string { return fmt.Sprintf("%x with hop limit %d at %v", s.bytes, s.hop, s.at) }

func addrs(s string) []netip.Addr { return []netip.Addr{addr(s)} }

func prefixesOf(s string) []netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return []netip.Prefix{p}
}
