package lab

import (
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// Two sites with a tunnel through two ordinary routers.
const twoSites = `
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  r2: router
  u1: underlay
  u2: underlay
links:
  - [r1, u1]
  - [u1, u2]
  - [u2, r2]
  - {ends: [r1, r2], tunnel: vxlan}
`

func TestATunnelCrossesItsUnderlay(t *testing.T) {
	nstest.Root(t)
	before := machine(t)
	f, err := file.Parse("sites.yaml", []byte("name: "+nstest.LabNamed("sites")+twoSites))
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{stub: []string{"sleep", "1000"}}
	l, err := Up(t.Context(), f, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Down(t.Context(), f.Name, opt) })
	far := netip.AddrPortFrom(l.plan.Node("r2").LinkLocal.WithZone("to-r2"), 9)
	crosses := func() error { return reach(t, l, "r1", far) }
	nstest.Wait(t, "ip -n "+l.plan.Node("r1").Netns+" -d link", crosses)
	for verb, heal := range map[string]string{"cut u1 u2": "heal u1 u2", "unplug r1 u1": "heal r1 u1", "remove r2 u2": "heal r2", "remove r1 r2": "heal r1 r2", "unplug r2 r1": "heal r2 r1"} {
		act(t, l, verb)
		if crosses() == nil {
			t.Errorf("r1 reaches r2 after %s", verb)
		}
		act(t, l, heal)
		nstest.Wait(t, "ip addr, after "+verb+" and "+heal, crosses)
	}
	if err := Down(t.Context(), f.Name, opt); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
