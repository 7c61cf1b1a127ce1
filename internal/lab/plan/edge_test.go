package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A ring of IP routers between two hosts, one of them with two uplinks.
const ring = `
nodes:
  h1: host
  r1: emulated
  r2: {kind: emulated, announce: [192.0.2.0/24], program: {name: forward, icmp: slow}}
  r3: {kind: emulated, routes: {"2001:db8::/32": r2}, fib: lpm, core: 1}
  r4: plain
  h2: host
links:
  - [h1, r1]
  - [h1, r2]
  - {ends: [r1, r2], rate: 10Mbit, cost: 7}
  - [r2, r3]
  - [r3, r4]
  - [r4, r1]
  - [r3, h2]
network: {ecmp: false, convergence: 2s, fib: lpm}
`

func TestANetworkOfPlainIPNeedsNoController(t *testing.T) {
	p := planOf(t, ring)
	f := p.File
	r2, r3 := f.Node("r2"), f.Node("r3")
	checks := map[string]bool{
		"bare":       f.Bare,
		"routing":    f.Network.Routing == file.Routing{Routes: file.ComputedRoutes, Convergence: 2e9, FIB: file.PrefixFIB},
		"program":    r2.Runs == file.ForwardProgram && fmt.Sprint(r2.Parameters) == "[{icmp slow}]",
		"core":       r3.Core == 1 && r2.Core == file.AnyCore,
		"static":     len(r3.Static) == 1 && r3.Static[0].Via == "r2",
		"announce":   fmt.Sprint(r2.Announce) == "[192.0.2.0/24]",
		"rate":       f.Links[2].Emulated[0].Rate == 10e6 && f.Links[2].Rate == 0 && f.Links[2].Cost == 7,
		"wires":      f.Links[3].Emulated != nil && f.Links[3].Emulated[0].String() == "",
		"namespaces": len(p.Spaces()) == 3 && p.Node("r1").Netns == "",
		"daemons":    f.Node("h1").Daemon() == "",
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("wrong: %s", what)
		}
	}
}

func TestHostsOfIPRoutersHaveSubnetsAndDefaultRoutes(t *testing.T) {
	p := planOf(t, ring)
	h1, seen := p.Node("h1"), map[netip.Prefix]bool{}
	for _, c := range p.Cable {
		for i, port := range c.Ports {
			if port.Addrs == nil {
				continue
			}
			for j, a := range port.Addrs {
				if far := c.Ports[1-i].Addrs[j]; a == far || a.Masked() != far.Masked() || seen[a] {
					t.Errorf("%v: %v and %v", c.Ends, a, far)
				}
				seen[a] = true
			}
		}
	}
	if len(seen) != 3*2*2 {
		t.Errorf("%d addresses at links to hosts: %v", len(seen), seen)
	}
	var got []string
	for _, r := range h1.Routes {
		got = append(got, fmt.Sprintf("%v via %v dev %s metric %d", r.Prefix, r.Via, r.Dev, r.Metric))
	}
	want := `::/0 via fd5f:0:1::1 dev to-r1 metric 1024
0.0.0.0/0 via 10.96.0.1 dev to-r1 metric 1024
::/0 via fd5f:0:1:1::1 dev to-r2 metric 1025
0.0.0.0/0 via 10.96.0.5 dev to-r2 metric 1025`
	if strings.Join(got, "\n") != want {
		t.Errorf("routes of h1:\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if known := fmt.Sprint(h1.Known(), p.Node("r4").Known()); known != "[fd5f:0:1::2 10.96.0.2] [fd5f:0:0:2::4 10.95.0.4]" {
		t.Errorf("known as %s", known)
	}
}

func TestAKernelRouterAmongOthersHasRoutesToAll(t *testing.T) {
	p := planOf(t, ring)
	var got []string
	for _, r := range p.Node("r4").Routes {
		got = append(got, fmt.Sprintf("%v dev %s", r.Prefix, r.Dev))
	}
	want := "fd5f:0:0:2::1/128 dev to-r1, 10.95.0.1/32 dev to-r1, fd5f:0:1::/64 dev to-r1, 10.96.0.0/30 dev to-r1, " +
		"fd5f:0:0:2::2/128 dev to-r3, 10.95.0.2/32 dev to-r3, fd5f:0:1:1::/64 dev to-r3, 10.96.0.4/30 dev to-r3, 192.0.2.0/24 dev to-r3, " +
		"fd5f:0:0:2::3/128 dev to-r3, 10.95.0.3/32 dev to-r3, fd5f:0:1:2::/64 dev to-r3, 10.96.0.8/30 dev to-r3"
	if strings.Join(got, ", ") != want {
		t.Errorf("routes of r4:\n%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}
