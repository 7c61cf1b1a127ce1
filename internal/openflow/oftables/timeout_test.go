package oftables

import (
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// timed is a flow that idles out.
func timed(generation uint32) Flow {
	return Flow{ID: generation, Priority: 7, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x88cc)}, Idle: 10, Instructions: ofp.Apply(ofp.Output{Port: 1})}
}

// reads compares a switch with what it was told, and fails where more or fewer differences are found.
func reads(t *testing.T, m *model, tables *Tables, want int) {
	t.Helper()
	flows, groups, meters := m.read(newWalker())
	if d := tables.Verify(flows, groups, meters); len(d) != want {
		t.Errorf("Verify says %q, want %d differences", d, want)
	}
}

func obeys(t *testing.T, m *model, tables *Tables, want int) {
	t.Helper()
	bodies := tables.Drain()
	if err := m.do(bodies...); err != nil || len(bodies) != want {
		t.Errorf("the switch is told %+v (%v), want %d messages", bodies, err, want)
	}
}

// The news that an entry has expired is for that entry: not for one that was put in its place while they were on their way.
func TestNewsOfAnEarlierEntryTakeNothingAway(t *testing.T) {
	tables, m := New(space, kinds["1.5"]), newModel(ofp.V15)
	tables.Own(16, []Flow{timed(1)})
	obeys(t, m, tables, 1)
	key, _ := tables.ownFlow(newOwned(), 16, timed(1))
	news, ok := m.idle(key)
	if !ok || news.IdleTimeout != 10 {
		t.Fatalf("the switch says %+v, %v", news, ok)
	}
	tables.Change(16, []Flow{timed(2)}, nil)
	obeys(t, m, tables, 1)
	if tables.Removed(news) {
		t.Error("the news of the first are taken for the second")
	}
	obeys(t, m, tables, 0)
	reads(t, m, tables, 0)
	later, _ := m.idle(key)
	tables.Change(16, nil, []Flow{timed(0)})
	if !tables.Removed(later) {
		t.Error("the news of the second are not taken")
	}
	obeys(t, m, tables, 0)
	if _, there := tables.owners[16]; there {
		t.Error("of an owner without entries something is left")
	}
}

// A timeout is part of an entry.
func TestAnEntryWithAnotherTimeoutIsAnother(t *testing.T) {
	tables, m := New(space, kinds["1.5"]), newModel(ofp.V15)
	tables.Own(16, []Flow{timed(1)})
	obeys(t, m, tables, 1)
	longer := timed(1)
	longer.Idle = 20
	tables.Change(16, []Flow{longer}, nil)
	obeys(t, m, tables, 1)
	for key, f := range m.flows {
		f.IdleTimeout = 30
		m.flows[key] = f
	}
	reads(t, m, tables, 1)
}

// An entry that is missing may have expired just now, of which the switch tells in a moment: it is missed at the second look,
// and put back if it is still wanted. What somebody took out is put back as soon as the switch tells.
func TestWhatMayHaveExpiredIsMissedAtTheSecondLook(t *testing.T) {
	tables, m := New(space, kinds["1.5"]), newModel(ofp.V15)
	tables.Own(16, []Flow{timed(1)})
	obeys(t, m, tables, 1)
	key, e := tables.ownFlow(newOwned(), 16, timed(1))
	m.idle(key)
	reads(t, m, tables, 0)
	reads(t, m, tables, 1)
	tables.Learn(m.read(newWalker()))
	obeys(t, m, tables, 1)
	reads(t, m, tables, 0)
	delete(m.flows, key)
	if !tables.Removed(ofp.FlowRemoved{Reason: ofp.RemovedDeleted, Cookie: e.cookie, Table: key.table, Priority: key.priority, Match: e.match}) {
		t.Error("the switch had no such entry")
	}
	obeys(t, m, tables, 1)
	reads(t, m, tables, 0)
}

// A kept entry that expires is not there any more when its owner names it.
func TestAKeptEntryMayExpire(t *testing.T) {
	before, m := New(space, kinds["1.5"]), newModel(ofp.V15)
	before.Own(16, []Flow{timed(1)})
	obeys(t, m, before, 1)
	next := New(space, kinds["1.5"])
	next.Keep(16)
	next.Learn(m.read(newWalker()))
	obeys(t, m, next, 0)
	key, _ := next.ownFlow(newOwned(), 16, timed(1))
	news, _ := m.idle(key)
	next.Removed(news)
	next.Unkeep(16)
	next.Own(16, []Flow{timed(1)})
	obeys(t, m, next, 1)
	reads(t, m, next, 0)
}

// A lease is renewed by adding the entry again, as long as it is wanted and told; that it has run out is no difference.
func TestALeaseIsRenewedWhileItIsWanted(t *testing.T) {
	for _, copied := range []bool{false, true} {
		o := kinds["Open vSwitch"]
		tables, m := New(space, o), newModel(o.Version)
		tables.Drain()
		punt := Flow{ID: 3, Priority: 7, Match: ofp.Match{ofp.Uint(ofp.EthType, 0x88cc)}, Punt: true, Copy: copied, Lease: 6}
		tables.Own(16, []Flow{punt})
		if l := tables.Leases(); len(l) != 1 || l[0] != 6 {
			t.Errorf("leases %v", l)
		}
		if b := tables.Renew(6); len(b) != 0 {
			t.Errorf("renewed before the switch was told: %+v", b)
		}
		if err := m.do(tables.Drain()...); err != nil {
			t.Fatal(err)
		}
		before := len(m.flows)
		for key, f := range m.flows {
			if f.HardTimeout == 6 {
				delete(m.flows, key)
			}
		}
		if len(m.flows) != before-1 {
			t.Fatalf("%d entries, and %d with a lease", before, before-len(m.flows))
		}
		reads(t, m, tables, 0)
		reads(t, m, tables, 0)
		if b := tables.Renew(6); len(b) != 1 || m.do(b...) != nil || len(m.flows) != before {
			t.Errorf("renewed by %+v", b)
		}
		obeys(t, m, tables, 0)
		tables.Own(16, nil)
		if b := tables.Renew(6); len(b)+len(tables.Leases()) != 0 {
			t.Errorf("what nobody wants is renewed: %+v", b)
		}
	}
}
