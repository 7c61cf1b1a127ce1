package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/linux/cgroups"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// overIPv4 is the lab of hosts that share nothing with the routers but IPv4.
var overIPv4 struct {
	once  sync.Once
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	err   error
}

func theUnderlay(t *testing.T) *network {
	t.Helper()
	nstest.Root(t)
	overIPv4.once.Do(func() { overIPv4.lab, overIPv4.admin, overIPv4.err = bringUpFile("testdata/underlay.yaml", "_ul") })
	if overIPv4.err != nil {
		t.Fatalf("no lab to run in: %v", overIPv4.err)
	}
	n := &network{t, overIPv4.lab, overIPv4.admin, map[string]*nstest.NS{}}
	t.Cleanup(n.explain)
	return n
}

func takeUnderlayDown() error {
	if overIPv4.lab == nil {
		return nil
	}
	return lab.Down(context.Background(), overIPv4.lab.File.Name, lab.Options{})
}

// uplink is what a host's daemon says of its tunnel.
func (n *network) uplink(host string) (*apiv1.Uplink, error) {
	r, err := n.local(host).GetHostStatus(n.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
	if err != nil {
		return nil, err
	}
	u := r.Msg.Uplinks[len(r.Msg.Uplinks)-1] // behind the interfaces on which no router is
	if r.Msg.State != "joined" {
		return u, fmt.Errorf("%s: %s %s", host, r.Msg.State, r.Msg.Reason)
	}
	return u, nil
}

// tunneled waits until a host's tunnel is there and passes the check.
func (n *network) tunneled(host string, check func(*apiv1.Uplink) error) (u *apiv1.Uplink) {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() (err error) {
		if u, err = n.uplink(host); err == nil {
			err = check(u)
		}
		return err
	})
	return u
}

// anywhere is no check: the host has joined.
func anywhere(*apiv1.Uplink) error { return nil }

func leadsTo(router string) func(*apiv1.Uplink) error {
	return func(u *apiv1.Uplink) error {
		if u.Router != router {
			return fmt.Errorf("the tunnel leads to %q: %s", u.Router, u.Tunnel)
		}
		return nil
	}
}

// talks are two connections between hosts, one of them a stream whose bytes are compared.
func (n *network) talks(from string, addr netip.Addr) *load {
	n.t.Helper()
	l := &load{net: n}
	l.run("the TCP stream", n.dial(from, "tcp6", port(addr, echoPort)), stream)
	l.run("the TCP request/response flow", n.dial(from, "tcp6", port(addr, askPort)), exchange)
	l.progress("before anything happened")
	return l
}

func (n *network) servedBy(name, host string) netip.Addr {
	n.t.Helper()
	addr := n.create(name)
	n.loadServers(host, addr)
	n.serving(name, "tcp", echoPort, 1)
	n.serving(name, "tcp", askPort, 1)
	return addr
}

func TestHostsOnIPv4AloneServeAndConnect(t *testing.T) {
	n := theUnderlay(t)
	for _, c := range []struct {
		host, by string
		mtu      uint32
	}{{"c1", "vxlan", 1450}, {"s2", "vxlan", 1450}, {"s1", "wireguard", 1290}} {
		n.tunneled(c.host, func(u *apiv1.Uplink) error { // the test before this one may have killed the tunnel
			if !strings.HasPrefix(u.Tunnel, c.by) || u.Mtu > c.mtu || u.Mtu < c.mtu-8 {
				return fmt.Errorf("%s has the tunnel %q with an MTU of %d, want %s and %d, or a little less", c.host, u.Tunnel, u.Mtu, c.by, c.mtu)
			}
			return nil
		})
	}
	behind, open := n.servedBy("behind", "s1"), n.servedBy("open", "s2")
	for from, addr := range map[string]netip.Addr{"c1": behind, "far": behind, "s1": open} {
		l := n.talks(from, addr)
		l.progress("through tunnels")
		l.finish()
	}
}

func TestATunnelsDaemonsDieUnnoticed(t *testing.T) {
	n := theUnderlay(t)
	addr := n.servedBy("tunneldeath", "s1")
	at := n.tunneled("s1", anywhere).Router
	for _, dead := range [][]string{{"s1/hostd"}, {at + "/routerd"}, {"ctl/controld"}, {"c1/hostd"}} {
		l := n.talks("c1", addr)
		for _, d := range dead {
			n.killAlone(d)
		}
		l.progress("while " + strings.Join(dead, " and ") + " is away")
		for _, d := range dead {
			n.do("start " + d)
		}
		n.tunneled("s1", anywhere)
		n.tunneled("c1", anywhere)
		l.progress("after it is back")
		l.finish()
	}
}

// killAlone kills a daemon and not the WireGuard process that it started: as the kernel or a person would.
func (n *network) killAlone(daemon string) {
	n.t.Helper()
	for _, p := range n.processes(daemon) {
		p.Kill()
	}
	nstest.Wait(n.t, n.look(), func() error {
		if len(n.processes(daemon)) > 0 {
			return fmt.Errorf("%s is still there", daemon)
		}
		return nil
	})
}

// processes are those of a daemon without WireGuard's.
func (n *network) processes(daemon string) (list []*os.Process) {
	n.t.Helper()
	node, name, _ := strings.Cut(daemon, "/")
	for _, pid := range cgroups.Group(n.lab.Cgroup(node, name)).PIDs() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if p, found := os.FindProcess(pid); found == nil && err == nil && len(line) > 0 && !strings.Contains(string(line), "\x00wireguard") {
			list = append(list, p)
		}
	}
	return list
}

func TestATunnelMendsAfterItsProcessWasKilled(t *testing.T) {
	n := theUnderlay(t)
	addr := n.servedBy("mends", "s1")
	l := n.talks("c1", addr)
	n.kill("s1/hostd") // and all that it started
	n.do("start s1/hostd")
	n.tunneled("s1", anywhere)
	l.progress("after the host's WireGuard was killed")
	at := n.tunneled("s1", anywhere).Router
	n.kill(at + "/routerd")
	n.do("start " + at + "/routerd")
	l.progress("after the router's WireGuard was killed")
	n.tunneled("s1", anywhere)
	l.finish()
}

func TestWhenATunnelsRouterDiesItsHostsGoToAnother(t *testing.T) {
	n := theUnderlay(t)
	addr := n.servedBy("dies", "s1")
	from := n.tunneled("s1", anywhere).Router
	to := map[string]string{"r1": "r2", "r2": "r1"}[from]
	n.tunneled("far", anywhere)
	client := "s2"
	l := n.talks(client, addr)
	n.kill(from + "/routerd")
	n.do("cut " + from + " net")
	began := time.Now()
	n.tunneled("s1", leadsTo(to))
	t.Logf("after %v", time.Since(began))
	n.do("heal " + from + " net")
	n.do("start " + from + "/routerd")
	l.progress("after its tunnel's router died")
	l.finish()
}

func TestANATThatForgetsItsMappingsIsPassedAgain(t *testing.T) {
	n := theUnderlay(t)
	addr := n.servedBy("forgets", "s1")
	l := n.talks("far", addr)
	n.at("home").Try("nft", "add rule ip nat post counter masquerade random")
	var err error
	n.at("home").Do(func() { err = netlink.ConntrackTableFlush(netlink.ConntrackTable) })
	if err != nil {
		t.Fatal(err)
	}
	l.progress("after the NAT forgot its mappings")
	l.finish()
}

func TestATunnelFollowsAnAddressThatChanges(t *testing.T) {
	n := theUnderlay(t)
	addr := n.servedBy("changes", "s2")
	l := n.talks("c1", addr)
	dev, old := "to-net", n.lab.Plan().Node("s2").Ports[0].Under[0]
	fresh := netip.PrefixFrom(netip.AddrFrom4([4]byte{old.Addr().As4()[0], old.Addr().As4()[1], old.Addr().As4()[2], 77}), old.Bits())
	before := n.tunneled("s2", anywhere)
	for _, c := range []struct{ from, to netip.Prefix }{{old, fresh}, {fresh, old}} {
		n.readdress("s2", dev, c.from, c.to)
		l.progress(fmt.Sprintf("after the host went from %v to %v", c.from, c.to))
	}
	if now := n.tunneled("s2", anywhere); now.Locator != before.Locator {
		t.Errorf("the host had the locator %s, has %s", before.Locator, now.Locator)
	}
	l.finish()
}

// readdress gives an interface another IPv4 address, as DHCP does, and the routes by the same gateway.
func (n *network) readdress(host, dev string, from, to netip.Prefix) {
	n.t.Helper()
	gateway := n.lab.Plan().Node(host).Routes[0].Via
	for _, argv := range [][]string{ // as a client of DHCP would
		{"ip", "addr", "del", from.String(), "dev", dev},
		{"ip", "addr", "add", to.String(), "dev", dev},
		{"ip", "route", "replace", "default", "via", gateway.String(), "dev", dev},
	} {
		if out, err := n.at(host).Try(argv...); err != nil {
			n.t.Fatalf("%s: %v: %v\n%s", host, argv, err, out)
		}
	}
}

func TestAHostWithoutATunnelSaysWhyWithinSeconds(t *testing.T) {
	n := theUnderlay(t)
	block := "add table ip block; add chain ip block pass { type filter hook forward priority 0; }; add rule ip block pass ip saddr " +
		n.lab.Plan().Node("s2").Ports[0].Under[0].Addr().String() + " meta l4proto udp drop"
	if out, err := n.at("net").Try("nft", block); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
	t.Cleanup(func() { n.at("net").Try("nft", "delete table ip block") })
	nstest.Wait(t, n.look(), func() error { // for half a minute at most: it takes twelve seconds on an idle machine
		u, _ := n.uplink("s2")
		if u == nil || !strings.Contains(u.Tunnel, "does UDP pass") {
			return fmt.Errorf("it says %v", u)
		}
		return nil
	})
	n.at("net").Try("nft", "delete table ip block")
	n.tunneled("s2", anywhere)
}

// twice puts one more host behind the NAT, beside the lab's, whose daemon the test starts.
func (n *network) twice() *nstest.NS {
	n.t.Helper()
	ns, home := nstest.New(n.t, "twice"), n.at("home")
	nstest.Veth(n.t, ns, "u0", home, "to-twice")
	n.t.Cleanup(func() { home.Try("ip", "link", "del", "to-twice") })
	ns.Addr(n.t, "u0", "10.93.0.2/24")
	home.Addr(n.t, "to-twice", "10.93.0.1/24")
	ns.Run(n.t, "ip", "route", "add", "default", "via", "10.93.0.1")
	home.Run(n.t, "nft", "insert", "rule", "ip", "nat", "pass", "iifname", "to-twice", "accept")
	return ns
}

func TestAHostHasTwoTunnelsToTwoRouters(t *testing.T) {
	n := theUnderlay(t)
	addr := n.servedBy("twotunnels", "s2")
	ns, dir := n.twice(), t.TempDir()
	socket := filepath.Join(dir, "hostd.sock")
	t.Cleanup(func() { syscall.Unmount(filepath.Join(dir, "bpf"), syscall.MNT_DETACH) })
	controller := netip.AddrPortFrom(n.lab.Plan().Node("ctl").Ports[0].Under[0].Addr(), plan.ControllerPort)
	d := ns.StartCmd(t, exec.Command(self, "hostd", "--name", "twice", "--uplink", "tunnel:wireguard", "--uplink", "tunnel:wireguard", "--controller",
		"http://"+controller.String(), "--state", filepath.Join(dir, "state"), "--socket", socket, "--bpffs", filepath.Join(dir, "bpf")))
	client, base, err := api.Dial("unix:" + socket)
	if err != nil {
		t.Fatal(err)
	}
	local := apiv1connect.NewLocalClient(client, base)
	nstest.Wait(t, n.look(), func() error {
		s, err := local.GetHostStatus(t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return err
		}
		one, two := s.Msg.Uplinks[0], s.Msg.Uplinks[1]
		if one.Locator == "" || two.Locator == "" || one.Router == two.Router {
			return fmt.Errorf("its uplinks are %v and %v\nthe daemon printed:\n%s", one, two, d.Output())
		}
		return nil
	})
	l := &load{net: n}
	c, err := ns.Dial("tcp6", port(addr, echoPort))
	if err != nil {
		t.Fatal(err)
	}
	l.run("the TCP stream", c, stream)
	l.progress("by two tunnels")
	ns.Run(t, "ip", "link", "del", "sct0") // somebody does
	l.progress("after one of them was removed")
	l.finish()
	d.Signal(syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, d.Output())
	}
	if out, _ := ns.Try("ip", "-o", "link"); strings.Contains(out, "sct") {
		t.Errorf("tunnels outlived their daemon:\n%s", out)
	}
}
