package plan

import (
	"fmt"
	"strings"
	"testing"
)

// Two sites with a tunnel through two ordinary routers. LEFT and RIGHT are kinds, UNDER and TUNNEL more keys.
const sites = `
nodes:
  ctl: controller
  r1: {kind: LEFT, service: true}
  r2: RIGHT
  u1: underlay
  u2: underlay
links:
  - [r1, u1]
  - {ends: [u1, u2] UNDER}
  - [u2, r2]
  - {ends: [r1, r2], tunnel: vxlan TUNNEL}
`

func sitesOf(left, right, under, tunnel string) string {
	return strings.NewReplacer("LEFT", left, "RIGHT", right, "UNDER", under, "TUNNEL", tunnel).Replace(sites)
}

func TestATunnelHasWhatItsUnderlayLeaves(t *testing.T) {
	wide := strings.ReplaceAll(sitesOf("switch", "router", ", mtu: 1600", ""), "- [r1, u1]", "- {ends: [r1, u1], mtu: 1600}")
	wide = strings.ReplaceAll(wide, "- [u2, r2]", "- {ends: [u2, r2], mtu: 1570}")
	for _, test := range []struct{ text, outer, back, mtu string }{
		{sitesOf("router", "router", "", ""), "fd5f:0:0:100::1", "fd5f:0:0:102::2", "1430"},
		{sitesOf("router", "router", "", ", over: ipv4"), "10.94.0.1", "10.94.2.2", "1450"},
		{sitesOf("router", "router", ", mtu: 1400", ""), "fd5f:0:0:100::1", "fd5f:0:0:102::2", "1330"},
		{sitesOf("router", "router", "", ", mtu: 1300"), "fd5f:0:0:100::1", "fd5f:0:0:102::2", "1300"},
		{sitesOf("switch", "router", "", ""), "10.94.0.1", "10.94.2.2", "1500"},
		{sitesOf("router", "switch", "", ", over: ipv4"), "10.94.0.1", "10.94.2.2", "1500"},
		{wide, "fd5f:0:0:100::1", "fd5f:0:0:102::2", "1500"},
	} {
		c := planOf(t, test.text).Cable[3]
		if got := fmt.Sprint(c.Tunnel.Outer[0], " ", c.Tunnel.Outer[1], " ", c.MTU); got != test.outer+" "+test.back+" "+test.mtu {
			t.Errorf("%s\ntunnel %s, want %s %s %s", test.text, got, test.outer, test.back, test.mtu)
		}
	}
}

func TestAnUnderlayKnowsItsSubnetsAndNothingOfScaffold(t *testing.T) {
	p := planOf(t, sitesOf("router", "router", "", ""))
	for node, want := range map[string]string{
		"r1": "fd5f:0:0:101::/64 via fd5f:0:0:100::2, 10.94.1.0/24 via 10.94.0.2, fd5f:0:0:102::/64 via fd5f:0:0:100::2, 10.94.2.0/24 via 10.94.0.2",
		"u1": "fd5f:0:0:102::/64 via fd5f:0:0:101::2, 10.94.2.0/24 via 10.94.1.2",
	} {
		var got []string
		for _, r := range p.Node(node).Routes {
			got = append(got, fmt.Sprintf("%v via %v", r.Prefix, r.Via))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("routes of %s: %v, want %s", node, got, want)
		}
	}
	if n := p.Node("r1"); len(n.Data()) != 1 || n.Data()[0].Dev != "to-r2" || len(n.Peers) != 0 {
		t.Errorf("r1 has the ports %v and the peers %v", n.Data(), n.Peers)
	}
}
