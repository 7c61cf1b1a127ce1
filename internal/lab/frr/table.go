package frr

import (
	"cmp"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// A Table holds the routes and next hop objects of one router and tells what changes. It has no clock, socket
// or lock; one goroutine owns it.
type Table struct {
	hops   map[uint32]Hop
	routes map[netip.Prefix]*entry
	dirty  []netip.Prefix // looked at by the next Changes
}

type entry struct {
	route   Route
	present bool   // false: deleted since the last Changes
	old     bool   // not heard of since Mark
	told    Change // what Changes said last
}

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{hops: map[uint32]Hop{}, routes: map[netip.Prefix]*entry{}}
}

// Apply takes in one message. Routes of other tables than main are not looked at.
func (t *Table) Apply(m Message) {
	switch {
	case m.Hop != nil && m.Delete:
		delete(t.hops, m.Hop.ID) // routes that had it keep their ways until they are told of new ones
	case m.Hop != nil:
		t.setHop(*m.Hop)
	case m.Route == nil || m.Route.special || m.Route.Table != unix.RT_TABLE_MAIN:
	case m.Delete:
		if e := t.routes[m.Route.Prefix]; e != nil {
			e.present = false
			t.dirty = append(t.dirty, m.Route.Prefix)
		}
	default:
		t.setRoute(*m.Route)
	}
}

func (t *Table) setRoute(r Route) {
	e := t.routes[r.Prefix]
	if e == nil {
		e = &entry{}
		t.routes[r.Prefix] = e
	}
	e.route, e.present, e.old = r, true, false
	t.dirty = append(t.dirty, r.Prefix)
}

// setHop looks again at the routes that use a next hop object that is another now.
func (t *Table) setHop(h Hop) {
	before, known := t.hops[h.ID]
	t.hops[h.ID] = h
	if known && before.same(h) {
		return
	}
	for prefix, e := range t.routes {
		if e.route.HopID == h.ID || t.hops[e.route.HopID].has(h.ID) {
			t.dirty = append(t.dirty, prefix)
		}
	}
}

func (h Hop) same(g Hop) bool {
	return h.Blackhole == g.Blackhole && h.Via == g.Via && slices.Equal(h.Group, g.Group)
}

func (h Hop) has(id uint32) bool {
	return slices.ContainsFunc(h.Group, func(m Member) bool { return m.ID == id })
}

// Changes appends what is different from what Changes said before. Called after each frame it makes one
// replacement of a route that was deleted and added in it.
func (t *Table) Changes(dst []Change) []Change {
	slices.SortFunc(t.dirty, comparePrefix) // the same frames give the same changes
	for _, prefix := range slices.Compact(t.dirty) {
		e := t.routes[prefix]
		now := t.resolve(e)
		if !now.same(e.told) {
			e.told = now
			now.Via = slices.Clone(now.Via)
			dst = append(dst, now)
		}
		if !e.present {
			delete(t.routes, prefix)
		}
	}
	t.dirty = t.dirty[:0]
	return dst
}

func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// Mark begins a replay of the whole table: what is not heard of until Sweep is gone.
func (t *Table) Mark() {
	for _, e := range t.routes {
		e.old = true
	}
}

// Sweep ends a replay.
func (t *Table) Sweep() {
	for prefix, e := range t.routes {
		if e.old {
			e.present = false
			t.dirty = append(t.dirty, prefix)
		}
	}
}

// Len is the number of prefixes that have a route.
func (t *Table) Len() int { return len(t.routes) }
