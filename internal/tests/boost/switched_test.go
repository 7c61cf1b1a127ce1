package boost

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/steer"
	"scaffold.dev/scaffold/internal/openflow/switchd"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// A fabric is a network of two Open vSwitches, s1 and s2, which are one link for all that is at their ports: the client and the
// agents x and x2 at s1, the server and the agents y and y2 at s2. The controller drives both.
type fabric struct {
	*network
	ovs *nstest.OVS
	sw  *nstest.NS

	east, west []string // addresses of the hosts at either end
}

var (
	overIPv4 = ends{"10.3.0.2", "10.3.0.3", "9"}
	overIPv6 = ends{"fd03::2", "fd03::3", "9"}
)

// bareFabric has the two switches, a client, and a server, and nothing between them.
func bareFabric(t *testing.T) *fabric {
	t.Helper()
	nstest.Root(t)
	n := &network{t: t, client: nstest.New(t, "client"), server: nstest.New(t, "server"), agents: map[string]*nstest.Proc{}, ends: overIPv4, places: map[string]place{}}
	n.directory()
	f := &fabric{network: n, sw: nstest.New(t, "switches"), east: []string{"10.3.0.2", "fd03::2"}, west: []string{"10.3.0.3", "fd03::3"}}
	f.ovs = f.sw.NewOVS(t)
	for _, name := range []string{"s1", "s2"} {
		f.ovs.Bridge(t, name, "OpenFlow13,OpenFlow15")
		f.ovs.Vsctl(t, "set", "bridge", name, "other-config:dp-desc="+name)
	}
	return f
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	f := bareFabric(t)
	n := f.network
	ethtool := nstest.Program(t, "ethtool", "ethtool")
	nstest.Veth(t, f.sw, "s1-s2", f.sw, "s2-s1")
	f.ovs.Vsctl(t, "add-port", "s1", "s1-s2", "--", "add-port", "s2", "s2-s1")
	for i, h := range []struct {
		name, at string
		ns       *nstest.NS
	}{{"client", "s1", n.client}, {"server", "s2", n.server}, {"x", "s1", nil}, {"y", "s2", nil}, {"x2", "s1", nil}, {"y2", "s2", nil}} {
		if h.ns == nil {
			h.ns = nstest.New(t, h.name)
			n.places[h.name] = place{ns: h.ns, door: fmt.Sprintf("10.3.0.%d", i+2), ports: "eth0"}
		}
		port := "to-" + h.name
		nstest.Veth(t, h.ns, "eth0", f.sw, port)
		h.ns.Run(t, ethtool, "-K", "eth0", "tx", "off") // a switch in a process completes no checksums
		h.ns.Addr(t, "eth0", fmt.Sprintf("10.3.0.%d/24", i+2))
		h.ns.Addr(t, "eth0", fmt.Sprintf("fd03::%d/64", i+2))
		f.ovs.Vsctl(t, "add-port", h.at, port)
		if h.ns != n.client && h.ns != n.server {
			h.ns.Forward(t)
			h.ns.Sysctl(t, "net/ipv4/ip_forward", "1")
		}
	}
	f.drive()
	return f
}

// drive starts the controller, which drives both switches.
func (f *fabric) drive() {
	t, n := f.t, f.network
	t.Helper()
	at := "unix:" + f.ovs.Dir + "/of"
	n.beside = func(ctx context.Context) error {
		log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
		api := "unix:" + n.socket()
		return switchd.Run(ctx, switchd.Config{Listen: []string{at}, Controller: api, Steering: steer.New(ctx, api, log)}, log)
	}
	n.control()
	for _, name := range []string{"s1", "s2"} {
		f.ovs.Vsctl(t, "set-controller", name, at, "--", "set", "controller", name, "max_backoff=1000")
		// Afterwards: Open vSwitch throws its flows away when it gets its first controller.
		f.ovs.Ofctl(t, "-O", "OpenFlow13", "add-flow", f.bridge(name), "priority=0,actions=normal")
	}
}

func (f *fabric) bridge(name string) string { return "unix:" + f.ovs.Dir + "/" + name + ".mgmt" }

// site says who serves the hosts at both ends.
func (f *fabric) site(east, west []string) {
	f.t.Helper()
	for _, s := range []*apiv1.BoostSite{
		{Name: "east", Prefixes: f.east, Agents: east, Switches: []string{"s1"}},
		{Name: "west", Prefixes: f.west, Agents: west, Switches: []string{"s2"}},
	} {
		if _, err := f.boost.SetBoostSite(f.t.Context(), connect.NewRequest(s)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// allows has an entry for each family, and waits until agents and switches have what they need for them.
func (f *fabric) allows() {
	f.t.Helper()
	for name, e := range map[string]ends{"four": overIPv4, "six": overIPv6} {
		if _, err := f.boost.AllowBoost(f.t.Context(), connect.NewRequest(&apiv1.BoostEntry{Name: name, Client: e.client, Server: e.server, Port: 9})); err != nil {
			f.t.Fatal(err)
		}
	}
	f.steady()
}

// steady waits until all entries are boosted.
func (f *fabric) steady() {
	f.t.Helper()
	nstest.Wait(f.t, "the state of entries, and what agents said", func() error {
		all, err := f.list()
		if err != nil {
			return err
		}
		for _, e := range all.Entries {
			if e.State != "boosts" {
				return fmt.Errorf("entry %v; agents %v", e, all.Agents)
			}
		}
		for _, a := range all.Agents {
			if !a.Current {
				return fmt.Errorf("agent %v; it said %s", a, f.said(a.Name))
			}
		}
		return nil
	})
}

// both does something over each family.
func (f *fabric) both(do func()) {
	f.t.Helper()
	for _, e := range []ends{overIPv4, overIPv6} {
		f.ends = e
		do()
	}
}

// rules are the lines of a switch's table 0 that have the text.
func (f *fabric) rules(at, with string) (lines []string) {
	for _, line := range strings.Split(f.ovs.Ofctl(f.t, "-O", "OpenFlow15", "dump-flows", f.bridge(at), "table=0"), "\n") {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Switches send agents what they carry, of both families, and nothing else: what is older than its entry goes on, other ports
// and protocols pass as they did, each end sees the other's address, and without the entry connections pass again.
func TestSwitchesSendAgentsWhatTheyCarry(t *testing.T) {
	safety.Test(t, safety.Flow)
	f := newFabric(t)
	f.start("x")
	f.start("y")
	var older, boosted []flow
	f.both(func() { older = append(older, f.connect()) })
	f.site([]string{"x"}, []string{"y"})
	f.allows()
	f.both(func() {
		boosted = append(boosted, f.carried(true))
		f.ends.port = "10"
		other := f.connect()
		if f.boosted(other) {
			t.Error("a connection to another port is boosted")
		}
		f.echoes(other, "to another port")
		f.ends.port = "9"
		f.client.Run(t, "ping", "-c", "1", "-W", "5", f.ends.server)
	})
	all := append(older, boosted...)
	for i, c := range all {
		f.echoes(c, fmt.Sprint("amid, ", i))
		if got, _, _ := net.SplitHostPort(c.client.RemoteAddr().String()); got != overIPv4.server && got != overIPv6.server {
			t.Errorf("the client sees %s", got)
		}
	}
	for _, name := range []string{"four", "six"} {
		if _, err := f.boost.DenyBoost(t.Context(), connect.NewRequest(&apiv1.DenyBoostRequest{Name: name})); err != nil {
			t.Fatal(err)
		}
	}
	f.both(func() { f.echoes(f.carried(false), "after the entries' end") })
	for i, c := range all {
		f.echoes(c, fmt.Sprint("in the end, ", i))
	}
	for _, c := range all {
		c.client.Close()
		c.server.Close()
	}
	nstest.Wait(t, "ovs-ofctl dump-flows", func() error {
		for _, at := range []string{"s1", "s2"} {
			if left := f.rules(at, "mod_dl_dst"); len(left) > 0 {
				return fmt.Errorf("switch %s has %v", at, left)
			}
			if left := f.rules(at, "set_field:"); len(left) > 0 && strings.Contains(strings.Join(left, ""), "eth_dst") {
				return fmt.Errorf("switch %s has %v", at, left)
			}
		}
		return nil
	})
}

// Whatever becomes of an agent: new connections pass, and are boosted once it is back.
func TestConnectionsPassWithoutAnAgentAtASwitch(t *testing.T) {
	safety.Test(t, safety.Flow)
	f := newFabric(t)
	f.site([]string{"x"}, []string{"y"})
	f.start("x")
	f.start("y")
	f.allows()
	f.carried(true)
	for _, c := range []struct {
		what, name string
		away, back func()
	}{
		{"killed", "x", func() { f.agents["x"].Signal(syscall.SIGKILL); f.agents["x"].Wait() }, func() { f.start("x") }},
		{"killed", "y", func() { f.agents["y"].Signal(syscall.SIGKILL); f.agents["y"].Wait() }, func() { f.start("y") }},
		{"frozen", "x", func() { f.agents["x"].SignalAll(syscall.SIGSTOP) }, func() { f.agents["x"].SignalAll(syscall.SIGCONT) }},
		{"cut off", "y", func() { f.sw.Down(t, "to-y") }, func() { f.sw.Up(t, "to-y") }},
	} {
		c.away()
		f.both(func() { f.echoes(f.carried(false), c.what) })
		c.back()
		f.both(func() { f.echoes(f.carried(true), c.what+", and back") })
	}
}

// Connections stay at the agents that carry them while their lanes move to others, at either end.
func TestConnectionsStayAtTheirAgentsAtSwitches(t *testing.T) {
	safety.Test(t, safety.Flow)
	f := newFabric(t)
	f.site([]string{"x", "x2"}, []string{"y", "y2"})
	f.start("x")
	f.start("y")
	f.allows()
	var all []flow
	some := func(what string) {
		f.steady()
		f.both(func() {
			for range 8 {
				all = append(all, f.carried(true))
			}
		})
		for _, c := range all {
			f.echoes(c, what)
		}
	}
	some("at x and y")
	f.start("x2")
	f.start("y2")
	some("with others beside them")
	for _, name := range []string{"y", "x"} {
		if _, err := f.boost.DrainBoostAgent(t.Context(), connect.NewRequest(&apiv1.DrainBoostAgentRequest{Name: name})); err != nil {
			t.Fatal(err)
		}
		some(name + " is drained")
	}
	f.away()
	f.both(func() { all = append(all, f.carried(true)) })
	for _, c := range all {
		f.echoes(c, "without a controller")
	}
	f.control()
	some("with the next controller")
	for _, name := range []string{"x2", "y2", "x"} {
		was := f.agents[name].Children()
		for _, worker := range was {
			syscall.Kill(worker, syscall.SIGKILL)
		}
		nstest.Wait(t, f.said(name), func() error {
			if now := f.agents[name].Children(); len(was) != 1 || len(now) != 1 || now[0] == was[0] {
				return fmt.Errorf("agent %s has workers %v after %v", name, now, was)
			}
			return nil
		})
		some("with another worker of " + name)
	}
}
