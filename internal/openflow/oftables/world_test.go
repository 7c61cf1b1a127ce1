package oftables

import (
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

var (
	space     = sid.DefaultSpace()
	routerMAC = ofp.MAC{0x02, 0x5c, 0xaf, 0, 0, 1}
	ownHere   = space.Locator(0x100)
)

func options(v ofp.Version, extensions bool) Options {
	o := Options{Version: v, Extensions: extensions, MAC: routerMAC}
	if extensions {
		o.LinkLocal = LinkLocal(routerMAC)
	}
	return o
}

// kinds are the switches that there are.
var kinds = map[string]Options{
	"Open vSwitch":     options(ofp.V15, true),
	"1.5":              options(ofp.V15, false),
	"1.3":              options(ofp.V13, false),
	"Open vSwitch 1.3": options(ofp.V13, true),
}

func hostMAC(n int) ofp.MAC { return ofp.MAC{0x02, 1, 0, 0, byte(n >> 8), byte(n)} }

func serviceID(n int) sid.ServiceID {
	return sid.ServiceID{SS: 1, Suffix: sid.Suffix(sid.ReservedSuffixes + n)}
}

func hostRoute(n int, port string) plan.Route {
	return plan.Route{Prefix: space.Locator(uint16(n)).Prefix(), Via: netip.MustParseAddr(fmt.Sprintf("fe80::%x", n+2)), Port: port, MAC: hostMAC(n)}
}

func targets(weights ...uint32) (ts []resolve.Target) {
	for i, w := range weights {
		ts = append(ts, resolve.Target{Locator: space.Locator(uint16(0x101 + i)), Weight: w})
	}
	return ts
}

func triple(n int, p sid.Proto, port uint16) sid.Triple {
	return sid.Triple{Service: serviceID(n), Proto: p, Port: port}
}

// demo is a router with three hosts that serve web, a neighbour, a host that moved and one that is gone.
func demo(o Options) *Tables {
	t := New(space, o)
	t.SetRouter(ownHere, true)
	for i := range 4 {
		t.SetPort(fmt.Sprintf("p%d", i+1), ofp.Port(i+1))
	}
	t.SetNeighbour("p4", netip.MustParseAddr("fe80::99"), hostMAC(0x9999))
	t.Apply(demoRules())
	return t
}

func demoRules() plan.Rules {
	r := plan.Rules{
		Services: []plan.ServiceRule{{Service: serviceID(0), Instances: 3}, {Service: serviceID(1), Instances: 0}},
		Routes:   []plan.Route{{Prefix: netip.MustParsePrefix("fd5d:0:1:200::/56"), Via: netip.MustParseAddr("fe80::99"), Port: "p4"}},
		Resolutions: []plan.Resolution{
			{Triple: triple(0, sid.TCP, 80), Targets: targets(1, 2, 3)},
			{Triple: triple(0, sid.UDP, 53), Targets: targets(1, 2, 3)},
			{Triple: triple(0, sid.UDP, 0), Targets: targets(1, 2, 3)},
			{Triple: triple(0, 0, 0), Targets: targets(1, 2, 3)},
			{Triple: triple(0, sid.TCP, 22), Targets: targets(1)},
		},
		Redirects: []plan.Redirect{{From: space.Locator(0x110), To: space.Locator(0x210)}},
		Gone:      []plan.Gone{{Locator: space.Locator(0x111)}},
	}
	for i := range 3 {
		r.Routes = append(r.Routes, hostRoute(0x101+i, fmt.Sprintf("p%d", i+1)))
	}
	return r
}
