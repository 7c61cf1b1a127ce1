package oftables

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// TestWhatATargetReturnsMeetsAnother: of any weights, each may return a packet, and somebody whom the list does not have
// any more. All that a switch may do with it then is to send it to another one.
func TestWhatATargetReturnsMeetsAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := kinds[rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "switch")]
		weight := rapid.OneOf(rapid.Uint32Range(1, 3), rapid.Just(uint32(1000)), rapid.Uint32Range(1, 65535))
		ts := targets(rapid.SliceOfN(weight, 2, 40).Draw(t, "weights")...)
		tables, m := demo(o), newModel(o.Version)
		tables.Apply(plan.Rules{Routes: []plan.Route{{Prefix: space.AS, Via: netip.MustParseAddr("fe80::7"), Port: "p1", MAC: hostMAC(7)}},
			Resolutions: []plan.Resolution{{Triple: triple(0, sid.TCP, 80), Targets: ts}}})
		if err := m.do(tables.Drain()...); err != nil {
			t.Fatal(err)
		}
		refuser := rapid.SampledFrom(append(ts[:len(ts):len(ts)], resolve.Target{Locator: space.Locator(0x999)})).Draw(t, "refuser").Locator
		f := frame{from: hostMAC(9), to: routerMAC, hopLimit: 64, proto: sid.TCP, dport: 80, label: uint32(sid.NewLabel(refuser, 1)),
			src: space.Locator(0x205).Addr(1<<63 | rapid.Uint64().Draw(t, "src")), dst: space.ServiceAddr(serviceID(0))}
		all := m.walk(ofp.Port(4), f)
		for _, x := range all {
			l := sid.LocatorOf(x.frame.dst)
			if x.punted || x.expire || l == refuser || !slices.ContainsFunc(ts, func(y resolve.Target) bool { return y.Locator == l }) {
				t.Fatalf("returned by %v of %v: %+v", refuser, ts, x)
			}
		}
		if len(all) == 0 {
			t.Fatalf("returned by %v of %v: dropped", refuser, ts)
		}
	})
}

// TestUpToFourShareWhatOneReturnsByWeight: nobody of them has more than his share; of more at least half take part.
func TestUpToFourShareWhatOneReturnsByWeight(t *testing.T) {
	for _, weights := range [][]uint32{{1, 1000}, {1, 2, 3}, {5, 1, 1, 1}, ones(5), ones(10), {1000, 1, 1, 1, 1}, ones(100)} {
		ts := targets(weights...)
		for _, p := range partsOf(ts) {
			due := len(ts) - len(p.targets)
			if len(ts) <= mostAlone && len(p.targets) != 1 || len(p.others) < min(due, returnedMost/2) && len(p.targets) > 1 {
				t.Errorf("%v: what %v return is for %v", weights, p.targets, p.others)
			}
		}
	}
}

// TestOpenVSwitchSendsToAnotherWhatATargetReturned: each flow is first sent where the switch likes, then returned by
// whom it met. The others take it by weight, whatever chose the first one.
func TestOpenVSwitchSendsToAnotherWhatATargetReturned(t *testing.T) {
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, o)
			for p, port := range map[sid.Proto]uint16{sid.TCP: 80, sid.UDP: 53} {
				var first, again []frame
				for range 1000 {
					first = append(first, b.client(p, port))
				}
				met := map[netip.Addr]sid.Locator{}
				for _, f := range b.through(t, "p4", "p1", first...) {
					met[f.src] = sid.LocatorOf(f.dst)
				}
				for _, f := range first {
					f.label = uint32(sid.NewLabel(met[f.src], 1))
					again = append(again, f)
				}
				counts := map[sid.Locator]map[sid.Locator]int{}
				for _, f := range b.through(t, "p4", "p1", again...) {
					by := met[f.src]
					if counts[by] == nil {
						counts[by] = map[sid.Locator]int{}
					}
					counts[by][sid.LocatorOf(f.dst)]++
				}
				for by, counts := range counts {
					rest := slices.DeleteFunc(targets(1, 2, 3), func(x resolve.Target) bool { return x.Locator == by })
					if chance := likely(counts, rest); counts[by] > 0 || chance < 0.001 {
						t.Errorf("%v: %v returned packets, which met %v: p = %.2g, want none itself and p of at least 0.001", p, by, counts, chance)
					}
				}
			}
			one := b.client(sid.TCP, 22)
			one.label = uint32(sid.NewLabel(targets(1)[0].Locator, 1))
			if _, id, _ := Punted(b.punted(t, "p4", one).Cookie); id != PuntRetry {
				t.Errorf("returned by the only one: punted as %d, want %d", id, PuntRetry)
			}
		})
	}
}
