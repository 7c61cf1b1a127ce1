package boost

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A distant network is one whose agents are at no port of its switches: between client and router is s1, between server and router
// s2, and the agents x and y are behind the router.
type distant struct {
	*fabric
	router *nstest.NS
}

var (
	distantIPv4 = ends{"10.1.0.2", "10.2.0.2", "9"}
	distantIPv6 = ends{"fd01::2", "fd02::2", "9"}
)

func newDistant(t *testing.T) *distant {
	t.Helper()
	f := bareFabric(t)
	f.east, f.west = []string{"10.1.0.2", "fd01::2"}, []string{"10.2.0.2", "fd02::2"}
	d := &distant{f, nstest.New(t, "router")}
	ethtool := nstest.Program(t, "ethtool", "ethtool")
	d.router.Forward(t)
	d.router.Sysctl(t, "net/ipv4/ip_forward", "1")
	for i, h := range []struct {
		ns       *nstest.NS
		name, sw string
		agent    bool
	}{{d.client, "client", "s1", false}, {d.server, "server", "s2", false}, {nstest.New(t, "x"), "x", "", true}, {nstest.New(t, "y"), "y", "", true}} {
		net4, net6 := fmt.Sprintf("10.%d.0.", i+1), fmt.Sprintf("fd%02d::", i+1)
		port := "to-" + h.name
		if h.sw == "" {
			nstest.Veth(t, h.ns, "eth0", d.router, port)
		} else {
			nstest.Veth(t, h.ns, "eth0", f.sw, "to-"+h.name)
			nstest.Veth(t, d.router, port, f.sw, "up-"+h.name)
			f.ovs.Vsctl(t, "add-port", h.sw, "to-"+h.name, "--", "add-port", h.sw, "up-"+h.name)
			h.ns.Run(t, ethtool, "-K", "eth0", "tx", "off") // a switch in a process completes no checksums
			d.router.Run(t, ethtool, "-K", port, "tx", "off")
		}
		for _, a := range []struct {
			ns   *nstest.NS
			dev  string
			last string
		}{{h.ns, "eth0", "2"}, {d.router, port, "1"}} {
			a.ns.Addr(t, a.dev, net4+a.last+"/24")
			a.ns.Addr(t, a.dev, net6+a.last+"/64")
		}
		h.ns.Route(t, "0.0.0.0/0", net4+"1", "eth0")
		h.ns.Route(t, "::/0", net6+"1", "eth0")
		if h.agent {
			for _, forwards := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
				h.ns.Sysctl(t, forwards, "0") // nothing passes it that is not its own
			}
			f.places[h.name] = place{ns: h.ns, door: net4 + "2", ports: "eth0", more: "paths: [\"" + net6 + "2\"]\n"}
		}
	}
	f.drive()
	return d
}

// allows has an entry for each family, and waits until agents and switches have what they need for them.
func (d *distant) allows() {
	d.t.Helper()
	for name, e := range map[string]ends{"four": distantIPv4, "six": distantIPv6} {
		if _, err := d.boost.AllowBoost(d.t.Context(), connect.NewRequest(&apiv1.BoostEntry{Name: name, Client: e.client, Server: e.server, Port: 9, Mode: "rewrite"})); err != nil {
			d.t.Fatal(err)
		}
	}
	d.steady()
}

func (d *distant) both(do func()) {
	d.t.Helper()
	for _, e := range []ends{distantIPv4, distantIPv6} {
		d.ends = e
		do()
	}
}

// rewritten reports whether a connection is: the near agent has one with the client.
func (d *distant) rewritten(f flow) bool {
	d.t.Helper()
	_, port, _ := net.SplitHostPort(f.client.LocalAddr().String())
	return strings.Contains(d.places["x"].ns.Run(d.t, "ss", "-Htn", "dport", "=", port), d.ends.client)
}

// carried waits until connections are rewritten, or are not any more.
func (d *distant) carried(want bool) flow {
	d.t.Helper()
	var f flow
	nstest.Wait(d.t, "what agents said", func() error {
		if f = d.connect(); d.rewritten(f) != want {
			f.client.Close()
			f.server.Close()
			all, err := d.list()
			return fmt.Errorf("rewritten: %v; the controller says %v, %v; s1 has %v; x said %s, y said %s", !want, all, err, d.rules("s1", "reg3"), d.said("x"), d.said("y"))
		}
		return nil
	})
	return f
}

// legs are how many rules of connections a switch has.
func (d *distant) legs(at string) int { return len(d.rules(at, "idle_timeout=300")) }

// Agents that are at no switch's port carry connections by rules for each: two at the client's switch and two at the server's, by
// which each end sees the other. What is older than the entry goes on, and so do those that are carried when the entry goes.
func TestSwitchesRewriteForAgentsElsewhere(t *testing.T) {
	safety.Test(t, safety.Flow)
	d := newDistant(t)
	d.start("x")
	d.start("y")
	var all []flow
	d.both(func() { all = append(all, d.connect()) })
	d.site([]string{"x"}, []string{"y"})
	d.allows()
	d.both(func() {
		f := d.carried(true)
		if got, _, _ := net.SplitHostPort(f.client.RemoteAddr().String()); got != d.ends.server {
			t.Errorf("the client sees %s", got)
		}
		d.ends.port = "10"
		if other := d.connect(); d.rewritten(other) {
			t.Error("a connection to another port is rewritten")
		}
		all = append(all, f)
	})
	for _, at := range []string{"s1", "s2"} {
		if n := d.legs(at); n < 4 {
			t.Errorf("switch %s has %d rules of connections, for two: %v", at, n, d.rules(at, "reg3"))
		}
	}
	for i, c := range all {
		d.echoes(c, fmt.Sprint("amid, ", i))
	}
	for _, name := range []string{"four", "six"} {
		if _, err := d.boost.DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: name})); err != nil {
			t.Fatal(err)
		}
	}
	d.both(func() { d.echoes(d.carried(false), "after the entries' end") })
	for i, c := range all {
		d.echoes(c, fmt.Sprint("in the end, ", i))
		c.client.Close()
		c.server.Close()
	}
	nstest.Wait(t, "ovs-ofctl dump-flows", func() error {
		for _, at := range []string{"s1", "s2"} {
			if left := d.rules(at, "idle_timeout"); len(left) > 0 {
				return fmt.Errorf("switch %s has %v", at, left)
			}
		}
		return nil
	})
}

// A port that refuses is refused, and whatever becomes of agents and controller: new connections pass, those that are carried by
// agents which live go on, and connections are carried again once all are back.
func TestRewrittenConnectionsOutliveTheController(t *testing.T) {
	safety.Test(t, safety.Flow)
	d := newDistant(t)
	d.site([]string{"x"}, []string{"y"})
	d.start("x")
	d.start("y")
	d.allows()
	var all []flow
	some := func(what string, want bool) {
		d.both(func() { all = append(all, d.carried(want)) })
		for _, c := range all {
			d.echoes(c, what)
		}
	}
	some("at first", true)
	d.both(func() {
		if c, err := d.client.Dial("tcp", net.JoinHostPort(d.ends.server, "9")); err == nil {
			c.Close()
			t.Error("nobody listens, and the client is connected")
		}
	})
	for _, name := range []string{"x", "y"} {
		was := d.agents[name].Children()
		for _, worker := range was {
			syscall.Kill(worker, syscall.SIGKILL)
		}
		nstest.Wait(t, d.said(name), func() error {
			if now := d.agents[name].Children(); len(was) != 1 || len(now) != 1 || now[0] == was[0] {
				return fmt.Errorf("agent %s has workers %v after %v", name, now, was)
			}
			return nil
		})
		some("with another worker of "+name, true)
	}
	d.away()
	some("without a controller", false)
	d.control()
	some("with the next controller", true)
}

// What is carried ends by a reset at both ends with either agent, never by an end of the stream; new connections pass meanwhile,
// also while an agent stands still, and are carried once it is back.
func TestRewrittenConnectionsEndWithTheirAgents(t *testing.T) {
	safety.Test(t, safety.Flow)
	d := newDistant(t)
	d.site([]string{"x"}, []string{"y"})
	d.start("x")
	d.start("y")
	d.allows()
	for _, name := range []string{"x", "y"} {
		var all []flow
		d.both(func() {
			f := d.carried(true)
			d.echoes(f, "before")
			all = append(all, f)
		})
		d.agents[name].Signal(syscall.SIGKILL)
		d.agents[name].Wait()
		for i, f := range all {
			for at, c := range map[string]net.Conn{"client": f.client, "server": f.server} {
				if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s is killed, and the %s of connection %d hears %v, want a reset", name, at, i, err)
				}
			}
		}
		d.both(func() { d.echoes(d.carried(false), name+" is away") })
		d.start(name)
		d.both(func() { d.echoes(d.carried(true), name+" is back") })
	}
	d.ends = distantIPv4
	f := d.carried(true)
	d.agents["x"].SignalAll(syscall.SIGSTOP)
	d.echoes(d.carried(false), "x stands still")
	d.agents["x"].SignalAll(syscall.SIGCONT)
	d.echoes(f, "it goes on")
	d.echoes(d.carried(true), "and takes more")
}
