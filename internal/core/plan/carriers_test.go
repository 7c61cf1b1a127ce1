package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A told is a router as it follows what it is told.
type told map[sid.Triple][]resolve.Target

// follow has routers do what Drain says.
func follow(p *Plan, all map[string]told) {
	for _, step := range p.Drain() {
		for _, name := range step.Routers {
			for _, r := range step.Rules.Resolutions {
				if all[name] == nil {
					continue
				}
				if all[name][r.Triple] = r.Targets; len(r.Targets) == 0 {
					delete(all[name], r.Triple)
				}
			}
		}
	}
}

// two is two service routers, e and w, with a host each: x, an agent's, at e and b, who serves, at w.
func two(t *testing.T) *Plan {
	t.Helper()
	p := New(sid.DefaultSpace())
	for i, name := range []string{"e", "w"} {
		p.SetRouter(Router{Name: name, Service: true, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)})
	}
	p.SetHost(Host{Name: "x", Locator: sid.DefaultSpace().Locator(0x101), Router: "e"})
	p.SetHost(Host{Name: "b", Locator: sid.DefaultSpace().Locator(0x201), Router: "w"})
	p.SetService(names.Record{ID: serviceN(0)})
	p.SetSites(map[string]string{"e": "east", "w": "west"}, map[string]string{"x": "east"})
	return p
}

func register(t *testing.T, p *Plan, host string, r Readiness) {
	t.Helper()
	if err := p.Register(host, web(80), r); err != nil {
		t.Fatal(err)
	}
}

func locatorsOf(targets []resolve.Target) (all []sid.Locator) {
	for _, t := range targets {
		all = append(all, t.Locator)
	}
	return all
}

// The routers of a carrier's site lead to it first and to the others behind it; all other routers do not know of it, nor
// does a ping.
func TestACarrierIsForItsSiteAlone(t *testing.T) {
	p := two(t)
	routers := map[string]told{"e": {}, "w": {}}
	x, b := sid.DefaultSpace().Locator(0x101), sid.DefaultSpace().Locator(0x201)
	register(t, p, "x", Readiness{Ready: true, Carries: true})
	follow(p, routers)
	if len(routers["e"]) != 0 || len(routers["w"]) != 0 {
		t.Errorf("nobody serves, and routers have %v", routers)
	}
	register(t, p, "b", Readiness{Ready: true})
	follow(p, routers)
	at := routers["e"][web(80)]
	if len(at) != 2 || at[0].Locator != x || at[1].Locator != b || at[0].Weight < 10_000*at[1].Weight || at[0].Weight >= 1<<25 {
		t.Errorf("the router of the site has %v", at)
	}
	ping := sid.Triple{Service: serviceN(0)}
	if got := locatorsOf(routers["e"][ping]); !slices.Equal(got, []sid.Locator{b}) {
		t.Errorf("pings go to %v", got)
	}
	if got := locatorsOf(routers["w"][web(80)]); !slices.Equal(got, []sid.Locator{b}) {
		t.Errorf("the other router has %v", got)
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"the carrier's host is suspect", func() { p.SetHostState(x, HostSuspect) }},
		{"the carrier does not accept", func() { p.SetHostState(x, HostUp); register(t, p, "x", Readiness{Carries: true, Queue: true}) }},
		{"it is drained", func() {
			register(t, p, "x", Readiness{Ready: true, Carries: true})
			p.SetOverride(serviceN(0), "x", Override{Drain: true})
		}},
		{"its host is at no site", func() {
			p.SetOverride(serviceN(0), "x", Override{})
			p.SetSites(map[string]string{"e": "east", "w": "west"}, nil)
		}},
	} {
		c.do()
		follow(p, routers)
		if got := locatorsOf(routers["e"][web(80)]); !slices.Equal(got, []sid.Locator{b}) {
			t.Errorf("%s: the router has %v", c.what, got)
		}
	}
	p.SetSites(map[string]string{"e": "east", "w": "west"}, map[string]string{"x": "east"})
	follow(p, routers)
	if got := locatorsOf(routers["e"][web(80)]); !slices.Equal(got, []sid.Locator{x, b}) {
		t.Errorf("in the end the router has %v", got)
	}
	p.RemoveService(serviceN(0))
	follow(p, routers)
	if len(routers["e"]) != 0 || len(routers["w"]) != 0 {
		t.Errorf("of a service that was removed there is %v", routers)
	}
}

// Whatever happens in whatever order: what routers were told step by step is what a snapshot would tell them, and no carrier is
// known beside its site.
func TestCarriersStepByStepAreASnapshot(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		p := two(t)
		p.SetHost(Host{Name: "c", Locator: sid.DefaultSpace().Locator(0x202), Router: "w"})
		routers := map[string]told{"e": {}, "w": {}}
		siteOf := func() string { return []string{"", "east", "west"}[r.IntN(3)] }
		for range 20 {
			host := []string{"x", "b", "c"}[r.IntN(3)]
			switch r.IntN(6) {
			case 0, 1:
				register(t, p, host, Readiness{Ready: r.IntN(4) > 0, Carries: r.IntN(2) == 0})
			case 2:
				p.Withdraw(host, web(80))
			case 3:
				p.SetSites(map[string]string{"e": siteOf(), "w": siteOf()}, map[string]string{"x": siteOf(), "b": siteOf()})
			case 4:
				p.SetHostState(sid.DefaultSpace().Locator(0x101), HostState(r.IntN(3)))
			case 5:
				p.RemoveService(serviceN(0))
				p.SetService(names.Record{ID: serviceN(0)})
			}
			if r.IntN(3) == 0 {
				continue
			}
			follow(p, routers)
			for name, have := range routers {
				want := told{}
				for _, res := range p.Snapshot(name).Resolutions {
					want[res.Triple] = res.Targets
				}
				if len(have) != len(want) {
					t.Fatalf("router %s has %v, a snapshot is %v", name, have, want)
				}
				for triple, targets := range want {
					if !slices.Equal(have[triple], targets) {
						t.Fatalf("router %s has %v for %v, a snapshot has %v", name, have[triple], triple, targets)
					}
				}
			}
		}
	}
}
