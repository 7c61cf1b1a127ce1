package forward_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A lan is a router between a namespace a with fd0a::1 and 10.0.1.1, and a switch where two hosts are: fd0b::1 and
// 10.0.2.1, fd0b::2 and 10.0.2.2. The router takes an interface, one end of a veth pair; the switch has the other.
type lan struct {
	*emu.Net
	a      *nstest.NS
	hosts  [2]*nstest.NS
	router *forward.Forwarder
	node   *emu.Router
}

// A learning switch.
type learning map[[6]byte]uint16

func (l learning) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		p := &batch[i]
		frame := r.Frame(p)
		l[[6]byte(frame[6:12])] = p.Port
		port, known := l[[6]byte(frame[:6])]
		if !known {
			l.flood(r, p)
			port = emu.Drop
		}
		p.Port = port
	}
}

func (l learning) flood(r *emu.Router, p *emu.Packet) {
	if !r.Sum(p) {
		return
	}
	for _, port := range r.Ports() {
		if port.Number == int(p.Port) {
			continue
		}
		if c, ok := r.NewFrame(r.Frame(p)); ok {
			r.Send(c, uint16(port.Number))
		}
	}
}

func newLAN(t *testing.T) *lan {
	t.Helper()
	l := &lan{Net: newNet(t), a: nstest.New(t, "a"), hosts: [2]*nstest.NS{nstest.New(t, "h1"), nstest.New(t, "h2")}}
	sw := nstest.New(t, "sw")
	nstest.Veth(t, sw, "near", sw, "far")
	for _, dev := range []string{"near", "far"} {
		sw.Sysctl(t, "net/ipv6/conf/"+dev+"/disable_ipv6", "1")
		sw.Up(t, dev)
	}
	f, err := forward.New(forward.Config{Ports: []forward.PortConfig{
		{Addresses: []netip.Prefix{prefix("fd0a::ff/64"), prefix("10.0.1.254/24")}, LinkLocal: addr("fe80::ff")},
		{Addresses: []netip.Prefix{prefix("fd0b::ff/64"), prefix("10.0.2.254/24")}},
	}})
	must(t, err)
	must(t, f.Add(forward.Route{Prefix: prefix("fd0c::/16"), Hops: []forward.NextHop{{Port: 1, Via: addr("fd0b::2")}}}))
	l.router, l.node = f, l.Router("r", f)
	for _, e := range []*emu.Edge{edge(t, l.Net, l.a, "eth0", false), edge(t, l.Net, sw, "near", true)} {
		_, err := l.Link(e, l.node, [2]emu.Params{})
		must(t, err)
	}
	hub := l.Router("switch", learning{})
	for _, e := range []*emu.Edge{edge(t, l.Net, sw, "far", true), edge(t, l.Net, l.hosts[0], "eth0", false), edge(t, l.Net, l.hosts[1], "eth0", false)} {
		_, err := l.Link(e, hub, [2]emu.Params{})
		must(t, err)
	}
	must(t, l.Start())
	host(t, l.a, "eth0", "fd0a::1/64", "10.0.1.1/24", "fd0a::ff", "10.0.1.254")
	host(t, l.hosts[0], "eth0", "fd0b::1/64", "10.0.2.1/24", "fd0b::ff", "10.0.2.254")
	host(t, l.hosts[1], "eth0", "fd0b::2/64", "10.0.2.2/24", "fd0b::ff", "10.0.2.254")
	l.hosts[1].Addr(t, "lo", "fd0c::1/128")
	return l
}

func TestALANHasSeveralHosts(t *testing.T) {
	l := newLAN(t)
	for _, to := range []string{"fd0b::1", "fd0b::2", "10.0.2.1", "10.0.2.2", "fd0c::1"} {
		if out := ping(l.a, to); !strings.Contains(out, "ttl=63") {
			t.Errorf("%s: %s", to, out)
		}
	}
	for i, ns := range l.hosts {
		for _, to := range []string{"fd0a::1", "10.0.1.1"} {
			if out := ping(ns, to); !strings.Contains(out, "ttl=63") {
				t.Errorf("host %d to %s: %s", i+1, to, out)
			}
		}
	}
	if out := ping(l.hosts[0], "fd0b::2"); !strings.Contains(out, "ttl=64") {
		t.Errorf("neighbours: %s", out)
	}
	if out := ping(l.a, "fe80::ff%eth0"); !strings.Contains(out, "ttl=64") {
		t.Errorf("link-local: %s", out)
	}
	var known string
	must(t, l.Do(l.node, func() { known, _ = l.router.Handlers(l.node)["neighbours"].Get() }))
	if strings.Count(known, "reachable")+strings.Count(known, "stale") < 4 || strings.Count(known, l.hosts[0].MAC(t, "eth0").String()) < 2 {
		t.Errorf("neighbours:\n%s", known)
	}
}

func TestWhoIsNotThereIsUnreachable(t *testing.T) {
	l := newLAN(t)
	for to, from := range map[string]string{"fd0b::9": "fd0a::ff", "10.0.2.9": "10.0.1.254"} {
		if out := ping(l.a, "-W", "5", to); !strings.Contains(out, "From "+from) || !strings.Contains(out, "nreachable") {
			t.Errorf("%s: %s", to, out)
		}
	}
	for _, to := range []string{"[fd0a::ff]:7", "10.0.1.254:7"} {
		if _, err := l.a.Dial("tcp", to); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("TCP to %s: %v", to, err)
		}
		c, err := l.a.Dial("udp", to)
		must(t, err)
		defer c.Close()
		_, err = c.Write([]byte("?"))
		must(t, err)
		if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("UDP to %s: %v", to, err)
		}
	}
}

// A router with a namespace leaves what is for itself to the kernel there.
func TestARouterMayHaveANamespace(t *testing.T) {
	n, a, own, b := newNet(t), nstest.New(t, "a"), nstest.New(t, "own"), nstest.New(t, "b")
	f, err := forward.New(forward.Config{Ports: []forward.PortConfig{
		{Addresses: []netip.Prefix{prefix("fd0a::ff/64"), prefix("10.0.1.254/24")}},
		{Addresses: []netip.Prefix{prefix("fd0b::ff/64"), prefix("10.0.2.254/24")}},
	}})
	must(t, err)
	r := n.Router("r", f)
	for i, ns := range []*nstest.NS{a, b} {
		_, err := n.Link(edge(t, n, ns, "eth0", false), r, [2]emu.Params{})
		must(t, err)
		r.Ports()[i].SetLocal(edge(t, n, own, []string{"p0", "p1"}[i], false))
	}
	must(t, n.Start())
	host(t, a, "eth0", "fd0a::1/64", "10.0.1.1/24", "fd0a::ff", "10.0.1.254")
	host(t, b, "eth0", "fd0b::1/64", "10.0.2.1/24", "fd0b::ff", "10.0.2.254")
	for i, dev := range []string{"p0", "p1"} {
		own.Sysctl(t, "net/ipv6/conf/"+dev+"/addr_gen_mode", "1")
		for _, a := range f.Config().Ports[i].Addresses {
			own.Addr(t, dev, a.String())
		}
		own.Up(t, dev)
	}
	l := own.Listen(t, "tcp", "[fd0a::ff]:179")
	c, err := a.Dial("tcp", "[fd0a::ff]:179")
	must(t, err)
	c.Close()
	daemon, err := l.Accept()
	must(t, err)
	if from := daemon.RemoteAddr().(*net.TCPAddr).IP.String(); from != "fd0a::1" {
		t.Errorf("from %s", from)
	}
	daemon.Close()
	for _, to := range []string{"fd0b::1", "10.0.2.1"} {
		if out := ping(a, to); !strings.Contains(out, "ttl=63") {
			t.Errorf("%s: %s", to, out)
		}
		if out := ping(a, "-W", "1", "-t", "1", to); !strings.Contains(out, "Time") {
			t.Errorf("%s: %s", to, out)
		}
	}
	if n := counters(t, n, r, f); n.Answers != 0 || n.Echoes != 0 {
		t.Errorf("the program answered: %+v", n)
	}
}
