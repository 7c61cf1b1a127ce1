package oftables

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// FuzzLearn: whatever a switch says that it has, nothing panics, and the next difference puts it right or leaves it
// to others.
func FuzzLearn(f *testing.F) {
	for _, o := range kinds {
		m := newModel(o.Version)
		tables := demo(o)
		tables.Own(16, modules(o))
		if err := m.do(tables.Drain()...); err != nil {
			f.Fatal(err)
		}
		flows, groups, meters := m.read(newWalker())
		for _, p := range []ofp.Part{ofp.Flows(flows[:20]), ofp.Flows(flows[20:]), ofp.Groups(groups), ofp.Meters(meters)} {
			b, err := ofp.Message{Version: o.Version, Body: ofp.MultipartReply{Part: p}}.Append(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ofp.Parse(b)
		reply, ok := m.Body.(ofp.MultipartReply)
		if err != nil || !ok {
			return
		}
		flows, _ := reply.Part.(ofp.Flows)
		groups, _ := reply.Part.(ofp.Groups)
		meters, _ := reply.Part.(ofp.Meters)
		tables := demo(options(m.Version, true))
		tables.Learn(flows, groups, meters)
		tables.Verify(flows, groups, meters)
		tables.Drain()
		if more := tables.Drain(); len(more) > 0 {
			t.Fatalf("there is more to tell: %+v", more)
		}
		tables.Unheld()
		tables.Removal()
	})
}

// TestWhatOthersHaveInOurPlaceStays, is named, and is given way to.
func TestWhatOthersHaveInOurPlaceStays(t *testing.T) {
	o := kinds["Open vSwitch"]
	m, tables := newModel(o.Version), demo(o)
	key, e := tables.ours(space.Services)
	theirs := key.add(e)
	theirs.Cookie = 7
	if err := m.do(theirs); err != nil {
		t.Fatal(err)
	}
	flows, groups, meters := m.read(newWalker())
	tables.Learn(flows, groups, meters)
	if err := m.do(tables.Drain()...); err != nil {
		t.Fatal(err)
	}
	if m.flows[key].Cookie != 7 {
		t.Errorf("somebody else's flow is now %+v", m.flows[key])
	}
	flows, groups, meters = m.read(newWalker())
	if d := tables.Verify(flows, groups, meters); len(d) != 1 || !strings.Contains(d[0], "somebody else's") {
		t.Errorf("Verify says %q", d)
	}
	if d := tables.Unheld(); len(d) != 1 {
		t.Errorf("Unheld says %q", d)
	}
	delete(m.flows, key)
	flows, groups, meters = m.read(newWalker())
	tables.Learn(flows, groups, meters)
	if more := tables.Drain(); len(more) != 1 {
		t.Errorf("once it is gone the switch is told %+v, want ours", more)
	}
}

// TestSmallChangesAreSmall: each costs what it changes and no more.
func TestSmallChangesAreSmall(t *testing.T) {
	tables := demo(kinds["Open vSwitch"])
	tables.Drain()
	for _, c := range []struct {
		what   string
		change func()
		want   int
	}{
		{"nothing", func() { tables.Apply(demoRules()) }, 0},
		{"all of it anew", func() { tables.Begin(); tables.Apply(demoRules()); tables.Commit() }, 0},
		{"a neighbour's MAC", func() { tables.SetNeighbour("p4", demoRules().Routes[0].Via, hostMAC(5)) }, 1},
		{"a port's number", func() { tables.SetPort("p1", 9) }, 5}, // two entries come, two go, a route changes
		{"a service of one instance", func() {
			tables.Apply(plan.Rules{Resolutions: []plan.Resolution{{Triple: triple(0, 6, 22), Targets: targets(0, 1)}}})
		}, 4}, // two entries change, a list of one comes, one goes
		{"weights of one of three that share a list", func() {
			tables.Apply(plan.Rules{Resolutions: []plan.Resolution{{Triple: triple(0, 6, 80), Targets: targets(1, 1, 1)}}})
		}, 14}, // a group comes with the entry for it and ten for what is returned, two entries change
		{"back", func() {
			tables.Apply(plan.Rules{Resolutions: []plan.Resolution{{Triple: triple(0, 6, 80), Targets: targets(1, 2, 3)}}})
		}, 2}, // the group stays for a while: caches of the switch lead to it
		{"while somebody may come by it", func() { tables.Age() }, 0},
		{"once it was idle for long", func() { tables.Age() }, 12},
	} {
		c.change()
		if bodies := tables.Drain(); len(bodies) != c.want {
			t.Errorf("%s: %d messages, want %d: %+v", c.what, len(bodies), c.want, bodies)
		}
	}
}

// A controller that begins to lead has the rules of the one before, and not yet the MACs of neighbours: one that is a switch
// as well may come to it seconds later. Until it knows them the switch keeps its ways, whichever it is told first: the rules
// or what the switch has. A way by another port is not kept.
func TestRoutesToNeighboursThatAreNotBackStay(t *testing.T) {
	o := kinds["Open vSwitch"]
	next := func() *Tables {
		tables := New(space, o)
		tables.SetRouter(ownHere, true)
		for i := range 4 {
			tables.SetPort(fmt.Sprintf("p%d", i+1), ofp.Port(i+1))
		}
		return tables
	}
	elsewhere := demoRules()
	elsewhere.Routes[0].Port = "p3"
	for what, c := range map[string]struct {
		rules plan.Rules
		first bool // the rules come first
		lost  bool
	}{"rules, then what it has": {demoRules(), true, false}, "what it has, then rules": {demoRules(), false, false}, "by another port": {elsewhere, true, true}} {
		m := newModel(o.Version)
		if err := m.do(demo(o).Drain()...); err != nil {
			t.Fatal(err)
		}
		empty := next()
		key, _ := empty.flow(empty.table(tableRoutes), routePriority(c.rules.Routes[0].Prefix), PuntNothing, ofp.Match{ipv6, ofp.Prefix(ofp.IPv6Dst, c.rules.Routes[0].Prefix)})
		before, there := m.flows[key]
		if !there {
			t.Fatal("the switch has no such route: the test shows nothing")
		}
		tables := next()
		if c.first {
			tables.Apply(c.rules)
		}
		tables.Learn(m.read(newWalker()))
		if !c.first {
			tables.Apply(c.rules)
		}
		if err := m.do(tables.Drain()...); err != nil {
			t.Fatal(err)
		}
		after, stays := m.flows[key]
		if stays == c.lost {
			t.Errorf("%s: the route is there: %v", what, stays)
		}
		if stays && !reflect.DeepEqual(before, after) {
			t.Errorf("%s: %+v, was %+v", what, after, before)
		}
		if tables.Waiting() != 1 {
			t.Errorf("%s: %d routes wait for a MAC, want 1", what, tables.Waiting())
		}
		tables.SetNeighbour(c.rules.Routes[0].Port, c.rules.Routes[0].Via, hostMAC(0x777))
		if err := m.do(tables.Drain()...); err != nil {
			t.Fatal(err)
		}
		if told := m.flows[key]; reflect.DeepEqual(told, before) || !strings.Contains(fmt.Sprint(told), fmt.Sprint(hostMAC(0x777))) {
			t.Errorf("%s: once the MAC is known the route is %+v", what, told)
		}
		tables.SetNeighbour(c.rules.Routes[0].Port, c.rules.Routes[0].Via, ofp.MAC{})
		if err := m.do(tables.Drain()...); err != nil {
			t.Fatal(err)
		}
		if _, stays := m.flows[key]; stays {
			t.Errorf("%s: the neighbour has gone, and the route is there", what)
		}
	}
}

// What a switch has of an owner that is kept stays until it is not any more, whoever reads and whatever else is told; then
// what is wanted stays as it is, and the rest goes.
func TestWhatIsKeptStaysUntilItsOwnerHasSpoken(t *testing.T) {
	o := kinds["Open vSwitch"]
	m, before := newModel(o.Version), demo(o)
	flow := func(port uint64) Flow {
		return Flow{Priority: 7, First: true, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x0800), ofp.Uint(ofp.IPProto, 6), ofp.UintMasked(ofp.TCPSrc, port, 7)}}
	}
	before.Own(5, []Flow{flow(1), flow(2)})
	before.Own(6, []Flow{flow(3)})
	if err := m.do(before.Drain()...); err != nil {
		t.Fatal(err)
	}
	has := func(want string) {
		t.Helper()
		var got []string
		for _, e := range m.flows {
			if owner, _, _ := Punted(e.Cookie); owner == 5 || owner == 6 {
				got = append(got, fmt.Sprintf("%d:%d", owner, e.Match[len(e.Match)-1].Uint()))
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("the switch has %v, want %v", got, want)
		}
	}
	has("[5:1 5:2 6:3]")
	next := demo(o)
	next.Keep(5)
	next.Own(5, []Flow{{Priority: 9, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x88cc)}, Punt: true}})
	for range 2 {
		flows, groups, meters := m.read(newWalker())
		next.Learn(flows, groups, meters)
		if err := m.do(next.Drain()...); err != nil {
			t.Fatal(err)
		}
		has("[5:1 5:2 5:35020]")
		flows, groups, meters = m.read(newWalker())
		if d := next.Verify(flows, groups, meters); len(d) > 0 {
			t.Errorf("Verify says %q", d)
		}
	}
	next.Unkeep(5)
	next.Own(5, []Flow{flow(2)})
	if bodies := next.Drain(); len(bodies) == 0 || m.do(bodies...) != nil {
		t.Errorf("told %v", bodies)
	}
	has("[5:2]")
	if more := next.Drain(); len(more) > 0 {
		t.Errorf("there is more to tell: %v", more)
	}
}

// What the switch's version cannot say is left out and named, and keeps nothing else back; its owner is not told that it is
// there.
func TestWhatAVersionCannotSayIsLeftOut(t *testing.T) {
	guarded := Flow{Priority: 1, Match: ofp.Match{ofp.UintMasked(ofp.Reg(3), 0, 1)},
		Instructions: ofp.Apply(ofp.SetField{OXM: ofp.UintMasked(ofp.Reg(3), 1, 1)}, ofp.Resubmit{})}
	for name, said := range map[string]bool{"Open vSwitch": true, "Open vSwitch 1.3": false} {
		tables, m := demo(kinds[name]), newModel(kinds[name].Version)
		before, _, _ := tables.Count()
		tables.Own(5, []Flow{guarded, {Priority: 2, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x88cc)}}})
		if err := m.do(tables.Drain()...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		named := strings.Contains(strings.Join(tables.Unheld(), "\n"), "1 entries of owner 5: OpenFlow 1.3 cannot say them")
		if n, _, _ := tables.Count(); n-before != 1+pick(said, 1, 0) || tables.Holds(5) != said || named == said {
			t.Errorf("%s: it has %d entries more, holds them: %v, says %v", name, n-before, tables.Holds(5), tables.Unheld())
		}
		tables.Own(5, nil)
		if !tables.Holds(5) || len(tables.Unheld()) > pick(said, 0, 1) { // 1.3 has no redirects
			t.Errorf("%s: nothing is wanted, and missing is %v", name, tables.Unheld())
		}
	}
}

// An owner in whose place somebody else has an entry does not have what it wants.
func TestWhoIsGivenWayToIsMissed(t *testing.T) {
	flow := Flow{Priority: 2, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x88cc)}, Instructions: ofp.Apply(ofp.Output{Port: 1})}
	tables := demo(kinds["Open vSwitch"])
	tables.Own(5, []Flow{flow})
	tables.Own(6, []Flow{{Priority: 3, Match: flow.Match}})
	tables.Learn([]ofp.Flow{{Cookie: 7, Priority: priorityModules + 2, Match: flow.Match}}, nil, nil)
	tables.Drain()
	if tables.Holds(5) || !tables.Holds(6) {
		t.Errorf("it holds what owner 5 wants: %v, and owner 6: %v; somebody else has the place of the first", tables.Holds(5), tables.Holds(6))
	}
	tables.Learn(nil, nil, nil)
	tables.Drain()
	if !tables.Holds(5) {
		t.Error("the place is free, and it does not hold what owner 5 wants")
	}
}
