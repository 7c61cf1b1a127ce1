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
}

// MaxPriority is the highest of an owner's entry, one that punts included.
const MaxPriority = 0x3fff

const defaultRate = 1000

// owned is what an owner has put in.
type owned struct {
	flows  map[flowKey]struct{}
	meters map[uint32]ofp.MeterID // by Flow.ID
	copies map[flowKey]copying    // by the key of what it would be without the copy

	uncopied int // entries that copy and could not be made
}

// Own makes these the owner's entries: what it had and does not name goes. Of two with the same table, priority and
// match the later counts. Owner 0 is Scaffold itself.
func (t *Tables) Own(owner uint16, flows []Flow) {
	o := t.owners[owner]
	if o == nil {
		o = &owned{flows: map[flowKey]struct{}{}, meters: map[uint32]ofp.MeterID{}, copies: map[flowKey]copying{}}
		t.owners[owner] = o
	}
	o.uncopied = 0
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
	return flowKey{f.Table, priority, text(m)}, entry{cookieOf(owner, f.ID), m, is}
}
