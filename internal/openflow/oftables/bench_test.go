package oftables

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

const large = 10000

// largeRules are so many hosts, and as many services, of TCP and ping, each at three of a hundred sets of hosts.
func largeRules() (r plan.Rules) {
	for i := range large {
		r.Routes = append(r.Routes, hostRoute(0x101+i, fmt.Sprintf("p%d", i%4+1)))
		ts := make([]resolve.Target, 3)
		for j := range ts {
			ts[j] = resolve.Target{Locator: space.Locator(uint16(0x101 + 3*(i%100) + j)), Weight: uint32(j + 1)}
		}
		r.Services = append(r.Services, plan.ServiceRule{Service: serviceID(i), Instances: 3})
		r.Resolutions = append(r.Resolutions, plan.Resolution{Triple: triple(i, sid.TCP, 80), Targets: ts},
			plan.Resolution{Triple: triple(i, 0, 0), Targets: ts})
	}
	return r
}

// empty is a router with ports, and no rules yet.
func empty(o Options) *Tables {
	t := New(space, o)
	t.SetRouter(ownHere, true)
	for i := range 4 {
		t.SetPort(fmt.Sprintf("p%d", i+1), ofp.Port(i+1))
	}
	return t
}

// BenchmarkBuild is 10,000 hosts and 10,000 services from nothing, without a switch.
func BenchmarkBuild(b *testing.B) {
	rules := largeRules()
	for b.Loop() {
		t := empty(kinds["Open vSwitch"])
		t.Apply(rules)
		b.ReportMetric(float64(len(t.Drain())), "messages")
	}
}

// BenchmarkInstances is 10,000 services of ten instances, on a hundred sets of hosts and each on its own: what they cost
// in entries and groups, and of these for what is returned, without a switch.
func BenchmarkInstances(b *testing.B) {
	for _, sets := range []int{100, large} {
		b.Run(fmt.Sprint(sets, " sets of hosts"), func(b *testing.B) {
			var r plan.Rules
			for i := range large {
				ts := make([]resolve.Target, 10)
				for j := range ts {
					ts[j] = resolve.Target{Locator: space.Locator(uint16(0x101 + i%sets + 7*j)), Weight: uint32(j%3 + 1)}
				}
				r.Services = append(r.Services, plan.ServiceRule{Service: serviceID(i), Instances: 10})
				r.Resolutions = append(r.Resolutions, plan.Resolution{Triple: triple(i, sid.TCP, 80), Targets: ts})
			}
			for b.Loop() {
				t := empty(kinds["Open vSwitch"])
				t.Apply(r)
				t.Drain()
				flows, groups, _ := t.Count()
				b.ReportMetric(float64(flows), "flows")
				b.ReportMetric(float64(groups), "groups")
				b.ReportMetric(float64(t.returned), "flows-returned")
			}
		})
	}
}

// BenchmarkChange is the weight of one of 10,000 services, without a switch.
func BenchmarkChange(b *testing.B) {
	t := empty(kinds["Open vSwitch"])
	t.Apply(largeRules())
	t.Drain()
	for i := 0; b.Loop(); i++ {
		t.Apply(changed(i))
		b.ReportMetric(float64(len(t.Drain())), "messages")
	}
}

// changed is a service whose targets' weights change.
func changed(i int) plan.Rules {
	return plan.Rules{Resolutions: []plan.Resolution{{Triple: triple(7, sid.TCP, 80), Targets: targets(1, uint32(i%50+2), 3)}}}
}

// BenchmarkOpenVSwitch tells a real one all of it, reads it back, and changes one service after the other; the times
// are medians, until the switch says that it is done.
func BenchmarkOpenVSwitch(b *testing.B) {
	ovs := nstest.New(b, "switch").NewOVS(b)
	rules, n, took := largeRules(), 0, map[string][]time.Duration{}
	measure := func(what string, do func()) {
		start := time.Now()
		do()
		took[what] = append(took[what], time.Since(start))
	}
	for b.Loop() {
		n++
		name := fmt.Sprint("s", n)
		r := dial(b, ovs, ovs.Bridge(b, name, "OpenFlow15"))
		t := empty(kinds["Open vSwitch"])
		measure("all", func() {
			t.Apply(rules)
			r.tell(b, t.Drain())
		})
		var flows []ofp.Flow
		var groups []ofp.GroupDesc
		var meters []ofp.Meter
		measure("read", func() { flows, groups, meters = r.read(b) })
		measure("compare", func() {
			t.Learn(flows, groups, meters)
			if more := t.Drain(); len(more) > 0 {
				b.Fatalf("%d differences after reading back", len(more))
			}
		})
		for i := range 200 {
			measure("change", func() {
				t.Apply(changed(i))
				r.tell(b, t.Drain())
			})
		}
		r.Close()
		ovs.Vsctl(b, "del-br", name)
	}
	for what, times := range took {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1e3, "ms-"+what)
	}
}

// BenchmarkVisible is the time from a change of a service's only instance to the first packet that meets the new one,
// under packets that keep the old one in the switch's cache.
func BenchmarkVisible(b *testing.B) {
	s := newBench(b, kinds["Open vSwitch"])
	f := s.client(sid.TCP, 22)
	s.through(b, "p4", "p1", f)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		to := targets(1, 1)[(i+1)%2]
		time.Sleep(6 * time.Millisecond) // Open vSwitch goes over its cache every 5 ms at most
		start := time.Now()
		s.tables.Apply(plan.Rules{Resolutions: []plan.Resolution{{Triple: triple(0, sid.TCP, 22), Targets: []resolve.Target{to}}}})
		s.tell(b, s.tables.Drain())
		for sid.LocatorOf(s.through(b, "p4", "p1", f)[0].dst) != to.Locator {
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "ms-p99")
}

// BenchmarkFirstPackets is what first packets cost by a group and by the source's bits, in turns; the sockets that send and
// receive them are most of it.
func BenchmarkFirstPackets(b *testing.B) {
	const flows = 2000
	byName := map[string]*bench{"group": newBench(b, kinds["Open vSwitch"]), "source": newBench(b, kinds["1.5"])}
	took := map[string]time.Duration{}
	for b.Loop() {
		for name, s := range byName {
			var frames []frame
			for range flows {
				frames = append(frames, s.client(sid.UDP, 53))
			}
			start := time.Now()
			s.through(b, "p4", "p1", frames...)
			took[name] += time.Since(start)
		}
	}
	for name, d := range took {
		b.ReportMetric(float64(d.Microseconds())/float64(b.N*flows), "us-"+name)
	}
}
