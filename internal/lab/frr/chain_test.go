package frr

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A rig is routers in a chain, r0 - r1 - ..., by veth: port e1 leads up, e0 down. Router n has fd00::n on lo.
type rig struct {
	ns   []*nstest.NS
	dirs []string // of their daemons
}

// chain starts n routers that run what config adds to theirs.
func chain(t *testing.T, n int, config func(i int, c *Config)) *rig {
	t.Helper()
	needFRR(t)
	r := &rig{}
	for i := range n {
		ns := nstest.New(t, fmt.Sprintf("r%d", i))
		ns.Forward(t)
		ns.Addr(t, "lo", fmt.Sprintf("fd00::%d/128", i+1))
		r.ns = append(r.ns, ns)
		if i > 0 {
			nstest.Veth(t, r.ns[i-1], "e1", ns, "e0")
		}
	}
	for i := range n {
		r.start(t, i, n, config)
	}
	t.Cleanup(func() { r.explain(t) })
	return r
}

func (r *rig) start(t *testing.T, i, n int, config func(i int, c *Config)) {
	c := Config{Name: fmt.Sprintf("r%d", i), Number: uint32(i + 1), Ports: []Port{{Name: "lo", Passive: true}}}
	if i > 0 {
		c.Ports = append(c.Ports, Port{Name: "e0"})
	}
	if i < n-1 {
		c.Ports = append(c.Ports, Port{Name: "e1"})
	}
	config(i, &c)
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	r.dirs = append(r.dirs, run(t, r.ns[i], files))
}

// run starts the daemons of a router, whose directory it returns. The end of the test kills them: one that is asked to
// end hangs for ever if the module of its feed tries to connect just then (FRR 8.4; their pull request 17504).
func run(t *testing.T, ns *nstest.NS, files map[string]string) (dir string) {
	t.Helper()
	dir = filepath.Join(reachable(t), "frr")
	processes, err := Prepare(Spec{Name: ns.Name, Dir: dir, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		ns.StartUntil(t, p.Ready, append(p.Argv, "--log", "stdout")...)
	}
	return dir
}

// reachable is a directory that FRR's user reaches.
func reachable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755)
	return dir
}

// needFRR ends a test where the daemons cannot run.
func needFRR(t *testing.T) {
	t.Helper()
	nstest.Root(t)
	if _, err := Find(); err != nil {
		nstest.Program(t, "/usr/lib/frr/zebra", "frr")
		t.Fatal(err)
	}
}

// vtysh gives commands to a router's daemons as an operator types them into vtysh.
func vtysh(ns *nstest.NS, dir, command string) (string, error) {
	return ns.Try("vtysh", "--vty_socket", dir, "-c", command)
}

// explain shows what the routers of a failed test think.
func (r *rig) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	for i, ns := range r.ns {
		for _, show := range []string{"show running-config", "show ipv6 route", "show ipv6 ospf6 neighbor", "show bgp summary", "show fpm counters"} {
			out, _ := vtysh(ns, r.dirs[i], show)
			t.Logf("%s# %s\n%s", ns.Name, show, out)
		}
	}
}

func (r *rig) path(i int) string { return fmt.Sprintf("/proc/self/fd/%d", r.ns[i].Fd()) }

func ospf(_ int, c *Config) { c.OSPF = &OSPF{NoIPv4: true} }

func bgp(i int, c *Config) {
	c.BGP = &BGP{AS: 65001 + uint32(i)}
	for p := range c.Ports {
		if !c.Ports[p].Passive {
			c.Ports[p].Peer = &Peer{}
		}
	}
}

// told collects changes of a source for a test to wait for.
type told chan Change

func (c told) tell(changes []Change) {
	for _, change := range changes {
		c <- change
	}
}

func (c told) wait(t *testing.T, what string, want func(Change) bool) Change {
	t.Helper()
	end := time.After(nstest.Deadline)
	var seen []string
	for {
		select {
		case change := <-c:
			seen = append(seen, change.String())
			if want(change) {
				return change
			}
		case <-end:
			t.Fatalf("no %s among:\n%s", what, strings.Join(seen, "\n"))
		}
	}
}

func (c told) waitFor(t *testing.T, prefix string, kind Kind) Change {
	t.Helper()
	p := netip.MustParsePrefix(prefix)
	return c.wait(t, fmt.Sprintf("%v %v", p, kind), func(c Change) bool { return c.Prefix == p && c.Kind == kind })
}

// follow gives the changes of router i from both sources.
func (r *rig) follow(t *testing.T, i int) (feed, kernel told) {
	t.Helper()
	feed, kernel = make(told, 1000), make(told, 1000)
	lost := func(err error) {
		if !errors.Is(err, errGone) { // as it does when the test has ended
			t.Error(err)
		}
	}
	f, err := Listen(r.path(i), feed.tell, lost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err := NewWatch(r.path(i), kernel.tell, lost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return feed, kernel
}

func TestRoutesOfOSPFComeAndGoByBothSources(t *testing.T) { comeAndGo(t, ospf, FromOSPF) }

func TestRoutesOfBGPComeAndGoByBothSources(t *testing.T) { comeAndGo(t, bgp, FromBGP) }

// comeAndGo cuts the far link of a chain of three and joins it again.
func comeAndGo(t *testing.T, config func(int, *Config), protocol uint8) {
	r := chain(t, 3, config)
	feed, kernel := r.follow(t, 0)
	index := r.ns[0].Index(t, "e1")
	check := func(c Change) {
		if len(c.Via) != 1 || c.Via[0].Index != index || !c.Via[0].Gateway.IsLinkLocalUnicast() || c.Protocol != protocol {
			t.Errorf("%v by %d, want by interface %d to a link-local address by %d", c, c.Protocol, index, protocol)
		}
	}
	check(feed.waitFor(t, "fd00::3/128", Unicast))
	check(kernel.waitFor(t, "fd00::3/128", Unicast))
	r.ns[1].Down(t, "e1")
	feed.waitFor(t, "fd00::3/128", Gone)
	kernel.waitFor(t, "fd00::3/128", Gone)
	r.ns[1].Up(t, "e1")
	check(feed.waitFor(t, "fd00::3/128", Unicast))
	check(kernel.waitFor(t, "fd00::3/128", Unicast))
}
