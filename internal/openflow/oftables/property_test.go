package oftables

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

// A run tells tables and a world the same, and a model what the tables say.
type run struct {
	*world
	tables *Tables
	model  *model
	rand   *rand.Rand
}

func newRun(t *rapid.T) *run {
	o := kinds[rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "switch")]
	r := &run{newWorld(o), New(space, o), newModel(o.Version), rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))}
	for i, b := range others() {
		if err := r.model.do(b); err != nil {
			t.Fatal(i, err)
		}
	}
	return r
}

// others are entries of somebody else.
func others() []ofp.Body {
	return []ofp.Body{
		ofp.GroupMod{ID: 5, Buckets: []ofp.Bucket{{Actions: []ofp.Action{ofp.Output{Port: 1}}}}},
		meter{9}.mod(ofp.MeterAdd, 5),
		ofp.FlowMod{Priority: 0x8100, Cookie: 7, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x800)}, Instructions: ofp.Apply(ofp.Output{Port: ofp.PortNormal})},
		ofp.FlowMod{Table: 12, Priority: 1, Cookie: 0x5cae << 48, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x806)}, Instructions: ofp.Apply(ofp.Group{ID: 5})},
	}
}

var (
	portNames = []string{"a", "b", "c"}
	vias      = []netip.Addr{netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2")}
	hosts     = []sid.Locator{space.Locator(0x101), space.Locator(0x102), space.Locator(0x103), space.Locator(0x201), space.Locator(0x202)}
	ids       = []sid.ServiceID{serviceID(0), serviceID(1), {SS: 2, Suffix: serviceID(1).Suffix}}
	sockets   = []uint16{0, 53, 80}
)

func drawPrefix(t *rapid.T) netip.Prefix {
	if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
		return rapid.SampledFrom(hosts).Draw(t, "host").Prefix()
	}
	return rapid.SampledFrom([]netip.Prefix{space.Services, space.Locator(0).Prefix(), netip.MustParsePrefix("fd5d:0:1:100::/56"),
		netip.MustParsePrefix("fd5d:0:1:200::/56")}).Draw(t, "prefix")
}

func drawTargets(t *rapid.T) (ts []resolve.Target) {
	if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
		return nil
	}
	for _, l := range hosts {
		if w := rapid.SampledFrom([]uint32{0, 0, 1, 1, 2, 3, 100, 65535}).Draw(t, "weight"); w > 0 {
			ts = append(ts, resolve.Target{Locator: l, Weight: w})
		}
	}
	return ts
}

func drawRules(t *rapid.T) (r plan.Rules) {
	for range rapid.IntRange(1, 4).Draw(t, "rules") {
		gone := rapid.Bool().Draw(t, "gone")
		host, id := rapid.SampledFrom(hosts).Draw(t, "at"), rapid.SampledFrom(ids).Draw(t, "service")
		switch rapid.IntRange(0, 6).Draw(t, "what") {
		case 0, 1:
			x := plan.Route{Prefix: drawPrefix(t), Via: rapid.SampledFrom(vias).Draw(t, "via"), Port: rapid.SampledFrom(portNames).Draw(t, "port"), Gone: gone}
			if rapid.Bool().Draw(t, "mac") {
				x.MAC = hostMAC(rapid.IntRange(1, 3).Draw(t, "which"))
			}
			r.Routes = append(r.Routes, x)
		case 2:
			r.Services = append(r.Services, plan.ServiceRule{Service: id, Instances: uint32(rapid.IntRange(0, 2).Draw(t, "instances")),
				Forbidden: rapid.IntRange(0, 3).Draw(t, "forbidden") == 0, Gone: gone})
		case 3, 4:
			triple := sid.Triple{Service: id, Proto: rapid.SampledFrom([]sid.Proto{sid.TCP, sid.UDP}).Draw(t, "proto"), Port: rapid.SampledFrom(sockets).Draw(t, "number")}
			if triple.Port == 0 && triple.Proto == sid.TCP {
				triple.Proto = 0
			}
			r.Resolutions = append(r.Resolutions, plan.Resolution{Triple: triple, Targets: drawTargets(t)})
		case 5:
			r.Redirects = append(r.Redirects, plan.Redirect{From: host, To: rapid.SampledFrom(hosts).Draw(t, "to"), Gone: gone})
		case 6:
			r.Gone = append(r.Gone, plan.Gone{Locator: host, Back: gone})
		}
	}
	return r
}

func drawOwn(t *rapid.T) (flows []Flow) {
	for i := range rapid.IntRange(0, 3).Draw(t, "flows") {
		flows = append(flows, Flow{ID: uint32(i), Priority: uint16(rapid.IntRange(0, 2).Draw(t, "priority")), First: rapid.Bool().Draw(t, "first"),
			Match: ofp.Match{ofp.Uint(ofp.EthType, uint64(0x88cc+rapid.IntRange(0, 1).Draw(t, "ether")))},
			Punt:  rapid.Bool().Draw(t, "punt"), Copy: rapid.Bool().Draw(t, "copy"), Rate: uint32(rapid.IntRange(0, 2).Draw(t, "rate")), Instructions: ofp.Apply(ofp.Output{Port: 9})})
		if f := &flows[i]; f.Punt {
			f.Lease = rapid.SampledFrom([]uint16{0, 5}).Draw(t, "lease")
		} else {
			f.Idle = rapid.SampledFrom([]uint16{0, 10, 20}).Draw(t, "idle")
		}
	}
	return flows
}

// distinct are flows that are not in each other's place: which of two counts is not ours to say.
func distinct(flows []Flow) []Flow {
	seen := map[string]bool{}
	return slices.DeleteFunc(flows, func(f Flow) bool {
		key := fmt.Sprint(f.Priority, f.First, f.Match)
		was := seen[key]
		seen[key] = true
		return was
	})
}

// step is one thing that is told.
func (r *run) step(t *rapid.T) {
	name := rapid.SampledFrom(portNames).Draw(t, "name")
	switch rapid.IntRange(0, 13).Draw(t, "step") {
	case 0:
		r.own, r.resolves = rapid.SampledFrom([]sid.Locator{0, ownHere, ownHere}).Draw(t, "own"), rapid.IntRange(0, 3).Draw(t, "resolves") > 0
		r.tables.SetRouter(r.own, r.resolves)
	case 1, 2:
		number := ofp.Port(rapid.IntRange(1, 4).Draw(t, "number"))
		maps.DeleteFunc(r.ports, func(_ string, n ofp.Port) bool { return n == number })
		r.ports[name] = number
		r.tables.SetPort(name, number)
	case 3:
		delete(r.ports, name)
		r.tables.RemovePort(name)
	case 4, 5:
		n := neighbour{name, rapid.SampledFrom(vias).Draw(t, "via")}
		mac := rapid.SampledFrom([]ofp.MAC{{}, hostMAC(7), hostMAC(8)}).Draw(t, "mac")
		if r.neighbours[n] = mac; mac == (ofp.MAC{}) {
			delete(r.neighbours, n)
		}
		r.tables.SetNeighbour(n.port, n.via, mac)
	case 6:
		fresh := newWorld(r.o)
		r.tables.Begin()
		for range rapid.IntRange(0, 2).Draw(t, "parts") {
			rules := drawRules(t)
			fresh.apply(rules)
			r.tables.Apply(rules)
		}
		if rapid.Bool().Draw(t, "same") {
			fresh.apply(r.rules())
			r.tables.Apply(r.rules())
		}
		r.tables.Commit()
		r.routes, r.services, r.resolutions, r.redirects, r.gone = fresh.routes, fresh.services, fresh.resolutions, fresh.redirects, fresh.gone
	case 7:
		of := uint16(rapid.IntRange(16, 17).Draw(t, "owner"))
		r.owns[of] = distinct(drawOwn(t))
		if of == 17 { // apart from the other's
			for i := range r.owns[of] {
				r.owns[of][i].Priority += 10
			}
		}
		r.tables.Own(of, r.owns[of])
	case 8:
		r.drain(t)
	case 9:
		r.damage(t)
	case 10:
		r.change(t)
	case 11:
		r.expire(t)
	default:
		rules := drawRules(t)
		r.apply(rules)
		r.tables.Apply(rules)
	}
}

// place tells an owner's entries apart.
func place(f Flow) string { return fmt.Sprint(f.Table, f.Priority, f.First, f.Match) }

// change has an owner change some of its entries; those that punt are left alone.
func (r *run) change(t *rapid.T) {
	var set, unset []Flow
	now := map[string]Flow{}
	for _, f := range r.owns[16] {
		now[place(f)] = f
	}
	for _, f := range distinct(drawOwn(t)) {
		f.Punt, f.Copy, f.Lease, f.ID = false, false, 0, rapid.Uint32Range(0, 2).Draw(t, "generation")
		if have, has := now[place(f)]; has && have.Punt {
			continue
		} else if rapid.Bool().Draw(t, "take out") {
			unset = append(unset, f)
			delete(now, place(f))
		} else {
			set = append(set, f)
			now[place(f)] = f
		}
	}
	r.owns[16] = nil
	for _, at := range slices.Sorted(maps.Keys(now)) {
		r.owns[16] = append(r.owns[16], now[at])
	}
	r.tables.Change(16, set, unset)
}

// expire has what nothing has used go from the switch, which says so; who wanted it no longer does.
func (r *run) expire(t *rapid.T) {
	r.drain(t)
	for _, key := range slices.SortedFunc(maps.Keys(r.model.flows), flowKey.compare) {
		if rapid.Bool().Draw(t, "stays") {
			continue
		}
		news, ok := r.model.idle(key)
		if !ok {
			continue
		}
		of, _, _ := Punted(news.Cookie)
		r.owns[of] = slices.DeleteFunc(r.owns[of], func(f Flow) bool {
			is, _ := r.tables.ownFlow(newOwned(), of, f)
			gone := is == key
			if gone {
				r.tables.Change(of, nil, []Flow{f})
			}
			return gone
		})
		if !r.tables.Removed(news) {
			t.Fatalf("the switch has lost %+v, which it was not told to have", news)
		}
	}
	if more := r.tables.Drain(); len(more) > 0 {
		t.Fatalf("what expired leaves something to tell: %+v", more)
	}
}

// drain tells the model what there is to tell. No packet is dropped meanwhile that is not dropped before or after.
func (r *run) drain(t *rapid.T) { r.told(t, false) }

// told is drain; of a switch that somebody has damaged packets may be dropped until it is as it should be. An entry that
// lost its instructions drops what comes to it, and the way there may open before it goes: entries are removed from the
// first table on, so that none leads to a hole.
func (r *run) told(t *rapid.T, damaged bool) {
	in, probes := ofp.Port(1), []frame{drawFrame(t), drawFrame(t), drawFrame(t)}
	var before, dropped [3]bool
	for i, f := range probes {
		before[i] = len(r.model.walk(in, f)) == 0
	}
	for _, b := range r.tables.Drain() {
		if err := r.model.do(b); err != nil {
			t.Fatal(err)
		}
		for i, f := range probes {
			dropped[i] = dropped[i] || len(r.model.walk(in, f)) == 0
		}
	}
	for i, f := range probes {
		if !damaged && dropped[i] && !before[i] && len(r.model.walk(in, f)) > 0 {
			t.Fatalf("%+v is dropped while the switch is told of a change", f)
		}
	}
	flows, groups, meters := r.model.read(r.rand)
	if d := r.tables.Verify(flows, groups, meters); d != nil {
		t.Fatalf("the model is not what it was told: %q", d)
	}
	if more := r.tables.Drain(); len(more) > 0 {
		t.Fatalf("nothing has changed, and there is more to tell: %+v", more)
	}
}

// damage changes something of ours behind the tables' back; they read, and repair it.
func (r *run) damage(t *rapid.T) {
	for _, key := range slices.SortedFunc(maps.Keys(r.model.flows), flowKey.compare) {
		f := r.model.flows[key]
		if f.Cookie&cookieMask != cookieOurs {
			continue
		}
		switch rapid.IntRange(0, 9).Draw(t, "damage") {
		case 0:
			delete(r.model.flows, key)
		case 1:
			f.Instructions = nil
			r.model.flows[key] = f
		case 2:
			f.Priority += 300
			r.model.flows[flowKey{key.table, f.Priority, key.match}] = f
		}
	}
	for id, g := range r.model.groups {
		if ours(uint32(id)) && rapid.Bool().Draw(t, "group") {
			g.Buckets = g.Buckets[:1]
			r.model.groups[id] = g
		}
	}
	stray := ofp.GroupID(firstID + 77)
	r.model.groups[stray] = ofp.GroupDesc{ID: stray}
	for id := range r.model.meters {
		if ours(uint32(id)) && rapid.Bool().Draw(t, "meter") {
			r.model.meters[id] = ofp.Meter{ID: id}
		}
	}
	flows, groups, meters := r.model.read(r.rand)
	r.tables.Learn(flows, groups, meters)
	r.told(t, true)
}

// drawLabel is that of a packet on its way the first time, or of one that was returned by a target or somebody else.
func drawLabel(t *rapid.T) uint32 {
	retry := rapid.SampledFrom([]uint8{0, 0, 0, 1, 1, 1, 2, 15}).Draw(t, "retry")
	if retry == 0 {
		return 0
	}
	return uint32(sid.NewLabel(rapid.SampledFrom(append(hosts[:len(hosts):len(hosts)], 0, space.Locator(0x999))).Draw(t, "refuser"), retry))
}

func drawFrame(t *rapid.T) frame {
	to := hosts
	if rapid.Bool().Draw(t, "named") {
		to = []sid.Locator{0, space.Locator(0)}
	} else {
		to = append(slices.Clone(to), ownHere, space.Locator(0x104), space.Locator(0x300))
	}
	f := frame{from: hostMAC(5), to: routerMAC, src: space.Locator(0x400).Addr(1<<63 | rapid.Uint64().Draw(t, "src")),
		label: drawLabel(t), hopLimit: uint8(rapid.SampledFrom([]int{64, 64, 64, 2, 1, 0}).Draw(t, "hops")),
		proto: rapid.SampledFrom([]sid.Proto{sid.TCP, sid.UDP, sid.ICMPv6, 132}).Draw(t, "proto")}
	switch f.proto {
	case sid.TCP, sid.UDP:
		f.dport = rapid.SampledFrom([]uint16{53, 80, 81, sid.Port}).Draw(t, "dport")
	case sid.ICMPv6:
		f.dport = rapid.SampledFrom([]uint16{1, icmpEcho}).Draw(t, "type")
	}
	if f.proto == sid.TCP || f.proto == sid.UDP || f.proto == sid.ICMPv6 {
		f.fragment = rapid.SampledFrom([]uint16{0, 0, 1, 3<<3 | 1}).Draw(t, "fragment")
	}
	id := rapid.SampledFrom(append(slices.Clone(ids), serviceID(9))).Draw(t, "id")
	low := rapid.SampledFrom([]uint64{1, uint64(id.Suffix), 1<<63 | 5}).Draw(t, "low")
	l := rapid.SampledFrom(to).Draw(t, "dst")
	if f.dst = l.Addr(low); l == 0 {
		f.dst = space.ServiceAddr(id)
	}
	if rapid.IntRange(0, 9).Draw(t, "else") == 0 {
		f.to = hostMAC(6)
	}
	return f
}

// TestTablesAreWhatTheyWereTold: whatever was told, in whatever order, damaged and repaired meanwhile, the switch has
// what one would have that was told all of it at once; others' entries are as they were; and its packets go where
// the oracle says.
func TestTablesAreWhatTheyWereTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			r.step(t)
		}
		r.tables.Age() // what nobody uses any more stays a while
		r.tables.Age()
		r.drain(t)
		fresh := newModel(r.o.Version)
		if err := fresh.do(append(others(), r.scratch().Drain()...)...); err != nil {
			t.Fatal(err)
		}
		if got, want := r.model.text(r.tables), fresh.text(r.tables); got != want {
			t.Fatalf("the switch has\n%s\nand told at once it would have\n%s", got, want)
		}
		for range 40 {
			f, in := drawFrame(t), ofp.Port(rapid.IntRange(1, 4).Draw(t, "in"))
			got, want := r.model.walk(in, f), r.oracle(in, f)
			if !reachable(got, want) {
				t.Fatalf("%+v in by %v: the switch may do\n%+v\nwant one of\n%+v", f, in, got, want)
			}
		}
		if err := r.model.do(r.tables.Removal()...); err != nil {
			t.Fatal(err)
		}
		if len(r.model.flows) != 2 || len(r.model.groups) != 1 || len(r.model.meters) != 1 {
			t.Fatalf("after the removal %d flows, %d groups, %d meters are left, want 2, 1, 1", len(r.model.flows), len(r.model.groups), len(r.model.meters))
		}
	})
}

// reachable reports whether all that a switch may do is among what it should; a group may do all of it.
func reachable(got, want []outcome) bool {
	if len(got) == 0 || len(want) == 0 {
		return len(got) == len(want)
	}
	return !slices.ContainsFunc(got, func(o outcome) bool { return !slices.Contains(want, o) })
}
