package oftables

import (
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A Flow is an entry of a module, or of another part of the controller that has a number as an owner.
type Flow struct {
	ID           uint32 // what Punted gives back for its packets
	Table        uint8  // 0, or one of the owner's own
	Priority     uint16 // up to MaxPriority
	First        bool   // in table 0: before Scaffold's own entries; else behind them
	Match        ofp.Match
	Instructions []ofp.Instruction // what Punt leaves alone
	Punt         bool              // to the controller
	Copy         bool              // punted, the packet also goes on as if the entry were not there
	Rate         uint32            // packets a second that may be punted; 0: 1000
	Idle         uint16            // seconds without a packet after which the switch takes it out and says so; 0: never
	Lease        uint16            // seconds after which the switch takes it out unless Renew was said meanwhile; 0: never
}

// MaxPriority is the highest of an owner's entry, one that punts included.
const MaxPriority = 0x3fff

const defaultRate = 1000

// owned is what an owner has put in.
type owned struct {
	flows  map[flowKey]struct{}
	meters map[uint32]ofp.MeterID // by Flow.ID
	copies map[flowKey]copying    // by the key of what it would be without the copy

	leased map[flowKey]uint16   // those that go unless they are renewed
	unsaid map[flowKey]struct{} // that cannot be said in the switch's version

	uncopied int // entries that copy and could not be made
}

func newOwned() *owned {
	return &owned{flows: map[flowKey]struct{}{}, meters: map[uint32]ofp.MeterID{}, copies: map[flowKey]copying{},
		leased: map[flowKey]uint16{}, unsaid: map[flowKey]struct{}{}}
}

// Own makes these the owner's entries: what it had and does not name goes. Of two with the same table, priority and
// match the later counts. Owner 0 is Scaffold itself.
func (t *Tables) Own(owner uint16, flows []Flow) {
	o := t.owners[owner]
	if o == nil {
		o = newOwned()
		t.owners[owner] = o
	}
	o.uncopied = 0
	clear(o.unsaid)
	clear(o.leased)
	entries, meters, copies := map[flowKey]entry{}, map[uint32]struct{}{}, map[flowKey]struct{}{}
	for _, f := range flows {
		if f.Punt && !t.o.NoMeters {
			t.meterFor(o, owner, f)
			meters[f.ID] = struct{}{}
		}
		key, e := t.ownFlow(o, owner, f)
		if f.Punt && f.Copy {
			copies[key] = struct{}{}
			var ok bool
			if key, e, ok = t.copied(o, key, e); !ok {
				continue
			}
		}
		if !t.sayable(key, e) {
			o.unsaid[key] = struct{}{}
			continue
		}
		if e.hard != 0 {
			o.leased[key] = e.hard
		}
		entries[key] = e
	}
	replace(o.flows, entries, t.flows.set, t.flows.unset)
	t.dropCopies(o, copies)
	for id, meter := range o.meters {
		if _, ok := meters[id]; !ok {
			t.meters.unset(meter)
			delete(o.meters, id)
		}
	}
	if len(flows) == 0 {
		delete(t.owners, owner)
	}
}

// sayable reports whether an entry can be said in the switch's version: one that cannot would keep back all that is said with
// it. What 1.5 cannot say either is refused to who wants it.
func (t *Tables) sayable(key flowKey, e entry) bool {
	if t.o.Version >= ofp.V15 {
		return true
	}
	_, err := ofp.Message{Version: t.o.Version, Body: key.add(e)}.Append(nil)
	return err == nil
}

// Holds reports whether the switch has an owner's entries, copies aside, once it has done what Drain said last; Unheld says
// why not.
func (t *Tables) Holds(owner uint16) bool {
	o := t.owners[owner]
	if o == nil {
		return true
	}
	for key := range t.foreign {
		if _, is := o.flows[key]; is && !t.flows.cells[key].had {
			return false
		}
	}
	return len(o.unsaid) == 0
}

// Keep leaves what the switch has of an owner as it is, whatever Own says of it, until Unkeep.
func (t *Tables) Keep(owner uint16) { t.keeping[owner] = map[flowKey]entry{} }

// Unkeep ends that: from here on the owner has what Own says.
func (t *Tables) Unkeep(owner uint16) {
	for key, e := range t.keeping[owner] {
		t.flows.found(key, e)
	}
	delete(t.keeping, owner)
}

// setAside takes out of a reading what is kept as it is.
func (t *Tables) setAside(r *reading, set bool) {
	for key, e := range r.flows {
		owner, _, _ := Punted(e.cookie)
		kept, is := t.keeping[owner]
		if !is || t.flows.isWanted(key) {
			continue
		}
		delete(r.flows, key)
		if set {
			kept[key] = e
		}
	}
}

// replace puts in entries in the place of those that were there.
func replace(there map[flowKey]struct{}, entries map[flowKey]entry, set func(flowKey, entry), unset func(flowKey)) {
	for key := range there {
		if _, ok := entries[key]; !ok {
			unset(key)
			delete(there, key)
		}
	}
	for key, e := range entries {
		set(key, e)
		there[key] = struct{}{}
	}
}

// meterFor limits what an entry punts.
func (t *Tables) meterFor(o *owned, owner uint16, f Flow) {
	m := meter{f.Rate}
	if f.Rate == 0 {
		m.rate = defaultRate
	}
	id, ok := o.meters[f.ID]
	if !ok {
		hash := (uint64(owner)<<32 | uint64(f.ID)) * 0x9E3779B97F4A7C15
		n, free := numbered(hash, puntsUsed, func(id uint32) bool { return t.meters.taken(ofp.MeterID(id), m) })
		if !free {
			return
		}
		id = ofp.MeterID(n)
		o.meters[f.ID] = id
	}
	t.meters.set(id, m)
}

func (t *Tables) ownFlow(o *owned, owner uint16, f Flow) (flowKey, entry) {
	priority := min(f.Priority, MaxPriority)
	switch {
	case f.Table == 0 && f.First:
		priority += priorityFirst
	case f.Table == 0:
		priority += priorityModules
	}
	is := slices.Clone(f.Instructions)
	if f.Punt {
		is = t.punt(o.meters[f.ID])
	}
	m := canonical(f.Match)
	return flowKey{f.Table, priority, text(m)}, entry{cookieOf(owner, f.ID), m, is, f.Idle, f.Lease}
}
