package oftables

import (
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A group is one of ours, without its number.
type group struct {
	kind      ofp.GroupType
	buckets   []ofp.Bucket
	selection string // how a select group selects; "": as the switch likes
}

func (g group) same(o group) bool {
	return g.kind == o.kind && g.selection == o.selection && slices.EqualFunc(g.buckets, o.buckets, sameBucket)
}

// sameBucket leaves the buckets' numbers out: 1.3 has none.
func sameBucket(a, b ofp.Bucket) bool {
	return a.Weight == b.Weight && a.WatchPort == b.WatchPort && a.WatchGroup == b.WatchGroup && sameActions(a.Actions, b.Actions)
}

func (g group) mod(command ofp.GroupCommand, id ofp.GroupID) ofp.GroupMod {
	m := ofp.GroupMod{Command: command, Kind: g.kind, ID: id, Buckets: g.buckets}
	if g.selection != "" {
		m.Selection = &ofp.Selection{Method: g.selection}
	}
	return m
}

// readGroup is a group as the switch describes it.
func readGroup(d ofp.GroupDesc) group {
	g := group{kind: d.Kind, buckets: d.Buckets}
	if d.Selection != nil {
		g.selection = d.Selection.Method
	}
	return g
}

// A meter lets so many packets pass in a second.
type meter struct{ rate uint32 }

func (m meter) same(o meter) bool { return m == o }

// burst is in packets: what half a second may bring at once: a thousand programs that ask for what nobody serves ask five times each.
func (m meter) burst() uint32 { return max(m.rate/2, 10) }

func (m meter) mod(command ofp.MeterCommand, id ofp.MeterID) ofp.MeterMod {
	d := ofp.MeterMod{Command: command, Meter: ofp.Meter{ID: id}}
	if command != ofp.MeterDelete {
		d.Flags = ofp.MeterPktps | ofp.MeterBurst
		d.Bands = []ofp.Band{{Kind: ofp.BandDrop, Rate: m.rate, Burst: m.burst()}}
	}
	return d
}

// readMeter is a meter as the switch describes it; one that we would never make has rate 0.
func readMeter(d ofp.Meter) meter {
	m := meter{}
	if len(d.Bands) == 1 && d.Flags == ofp.MeterPktps|ofp.MeterBurst && d.Bands[0].Kind == ofp.BandDrop {
		if m.rate = d.Bands[0].Rate; d.Bands[0].Burst != m.burst() {
			m.rate = 0
		}
	}
	return m
}
