package fib

import (
	"iter"
	"net/netip"
	"slices"
	"unsafe"
)

// A Table is the forwarding table of one router, for IPv6 and IPv4. It belongs to one thread, which both asks and
// changes it; there is no lock, and nothing to wait for. IPv4 addresses written as IPv6 ones (::ffff:0:0/96) are IPv6.
type Table struct{ six, four trie }

// New returns an empty table.
func New() *Table { return &Table{newTrie(), newTrie()} }

// Lookup6 is the hop for an IPv6 address, given as two numbers: its first eight bytes, highest first, and its last.
func (t *Table) Lookup6(hi, lo uint64) Hop { return t.six.routes[t.six.find(hi, lo)].hop }

// Lookup4 is the hop for an IPv4 address, given as a number.
func (t *Table) Lookup4(address uint32) Hop {
	return t.four.routes[t.four.find(uint64(address)<<32, 0)].hop
}

// Lookup is the hop for an address of either family; slower.
func (t *Table) Lookup(a netip.Addr) Hop {
	trie, _ := t.family(a)
	return trie.routes[trie.find(words(a))].hop
}

func (t *Table) family(a netip.Addr) (tr *trie, four bool) {
	if a.Is4() {
		return &t.four, true
	}
	return &t.six, false
}

// Set makes a route, or changes where it leads. A prefix is taken with the bits beyond its length zero.
func (t *Table) Set(p netip.Prefix, h Hop) error {
	if err := (Route{p, h}).check(); err != nil {
		return err
	}
	trie, _ := t.family(p.Addr())
	i, _ := trie.add(keyOf(p))
	trie.routes[i].hop = h
	return nil
}

// Delete takes a route away, and reports whether it was there.
func (t *Table) Delete(p netip.Prefix) bool {
	if !p.IsValid() {
		return false
	}
	trie, _ := t.family(p.Addr())
	_, ok := trie.remove(keyOf(p))
	return ok
}

// Get is the hop of just this prefix.
func (t *Table) Get(p netip.Prefix) (Hop, bool) {
	if !p.IsValid() {
		return None, false
	}
	trie, _ := t.family(p.Addr())
	i, ok := trie.exact(keyOf(p))
	if !ok {
		return None, false
	}
	return trie.routes[i].hop, true
}

// Load puts routes in place of all that the table holds, much faster than one by one. Of several routes of one
// prefix the last counts. If one of them is wrong, the table stays as it is.
func (t *Table) Load(routes []Route) error {
	for _, r := range routes {
		if err := r.check(); err != nil {
			return err
		}
	}
	var six, four []keyed
	for _, r := range routes {
		if k := (keyed{keyOf(r.Prefix), r.Hop}); r.Prefix.Addr().Is4() {
			four = append(four, k)
		} else {
			six = append(six, k)
		}
	}
	t.six.load(six)
	t.four.load(four)
	return nil
}

// keyed is a route as a trie takes it.
type keyed struct {
	key
	hop Hop
}

// tidy sorts routes, and leaves the last of each prefix.
func tidy(routes []keyed) []keyed {
	byKey := func(a, b keyed) int { return a.compare(b.key) }
	if !slices.IsSortedFunc(routes, byKey) {
		slices.SortStableFunc(routes, byKey)
	}
	kept := routes[:0]
	for i, r := range routes {
		if i+1 == len(routes) || routes[i+1].key != r.key {
			kept = append(kept, r)
		}
	}
	return kept
}

// All are the routes of the table, IPv6 first, by address and length.
func (t *Table) All() iter.Seq2[netip.Prefix, Hop] {
	return func(yield func(netip.Prefix, Hop) bool) {
		_ = t.six.all(false, yield) && t.four.all(true, yield)
	}
}

func (t *trie) all(four bool, yield func(netip.Prefix, Hop) bool) bool {
	if t.given && !yield(key{}.prefix(four), t.routes[0].hop) {
		return false
	}
	for _, i := range t.order {
		if !yield(t.key(i).prefix(four), t.routes[i].hop) {
			return false
		}
	}
	return true
}

// Len is the number of routes.
func (t *Table) Len() int { return t.six.count() + t.four.count() }

func (t *trie) count() int {
	if t.given {
		return len(t.order) + 1
	}
	return len(t.order)
}

// Bytes is the memory that the table takes.
func (t *Table) Bytes() int { return int(unsafe.Sizeof(*t)) + t.six.bytes() + t.four.bytes() }

func (t *trie) bytes() int {
	return cap(t.slots)*4 + cap(t.nodes.items)*int(unsafe.Sizeof(node{})) + cap(t.leaves.items)*4 +
		cap(t.routes)*int(unsafe.Sizeof(route{})) + cap(t.lows)*8 + cap(t.order)*4 + cap(t.free)*4
}
