package fib

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An oracle is the slow and obvious table.
type oracle map[netip.Prefix]Hop

func (o oracle) lookup(a netip.Addr) Hop {
	hop, longest := None, -1
	for p, h := range o {
		if p.Contains(a) && p.Bits() > longest {
			hop, longest = h, p.Bits()
		}
	}
	return hop
}

// anyAddr draws addresses of which many share many bits: all but a few bytes come from a small choice.
func anyAddr() *rapid.Generator[netip.Addr] {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		var b [16]byte
		few := rapid.SampledFrom([]byte{0, 1, 2, 0x80, 0xff})
		for i := range b {
			b[i] = few.Draw(t, "byte")
		}
		if rapid.Bool().Draw(t, "common") {
			binary.BigEndian.PutUint64(b[:], 0x2001_0db8<<32|uint64(rapid.Uint16Range(0, 300).Draw(t, "net"))<<9)
		}
		if rapid.IntRange(0, 3).Draw(t, "family") == 0 {
			return netip.AddrFrom4([4]byte(b[6:10]))
		}
		return netip.AddrFrom16(b)
	})
}

func anyPrefix() *rapid.Generator[netip.Prefix] {
	return rapid.Custom(func(t *rapid.T) netip.Prefix {
		a := anyAddr().Draw(t, "address")
		return netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")).Masked()
	})
}

func anyHop() *rapid.Generator[Hop] {
	return rapid.Map(rapid.Uint16Range(0, 40), func(h uint16) Hop {
		if Hop(h) == Again {
			return First
		}
		return Hop(h)
	})
}

// near are addresses at the borders of a prefix, inside and outside.
func near(p netip.Prefix) []netip.Addr {
	first, last := p.Masked().Addr(), lastOf(p)
	return []netip.Addr{first, last, first.Prev(), last.Next()}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func agree(t *rapid.T, tab *Table, o oracle, a netip.Addr) {
	if !a.IsValid() {
		return
	}
	want, got := o.lookup(a), tab.Lookup(a)
	if a.Is4() {
		b := a.As4()
		if fast := tab.Lookup4(binary.BigEndian.Uint32(b[:])); fast != got {
			t.Fatalf("%v: Lookup4 says %v, Lookup %v", a, fast, got)
		}
	} else if fast := tab.Lookup6(words(a)); fast != got {
		t.Fatalf("%v: Lookup6 says %v, Lookup %v", a, fast, got)
	}
	if got != want {
		t.Fatalf("%v: %v, the oracle says %v, of %v", a, got, want, o)
	}
}

func TestLookupIsTheLongestPrefixAfterAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, o := New(), oracle{}
		if rapid.Bool().Draw(t, "bulk") {
			bulk(t, tab, o)
		}
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			p := anyPrefix().Draw(t, "prefix")
			if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
				p = some(t, o, p)
				if _, there := o[p]; tab.Delete(p) != there {
					t.Fatalf("Delete(%v) says it was not as it was", p)
				}
				delete(o, p)
			} else {
				o[p] = anyHop().Draw(t, "hop")
				if err := tab.Set(p, o[p]); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range near(p) {
				agree(t, tab, o, a)
			}
		}
		compare(t, tab, o)
	})
}

func bulk(t *rapid.T, tab *Table, o oracle) {
	var routes []Route
	for range rapid.IntRange(0, 300).Draw(t, "routes") {
		r := Route{anyPrefix().Draw(t, "prefix"), anyHop().Draw(t, "hop")}
		routes = append(routes, r)
		o[r.Prefix] = r.Hop
	}
	if err := tab.Load(routes); err != nil {
		t.Fatal(err)
	}
}

// some is one of the oracle's prefixes, or another if it has none.
func some(t *rapid.T, o oracle, other netip.Prefix) netip.Prefix {
	all := append(slices.SortedFunc(maps.Keys(o), netip.Prefix.Compare), other)
	return rapid.SampledFrom(all).Draw(t, "which")
}

// compare holds everything that a table says against the oracle.
func compare(t *rapid.T, tab *Table, o oracle) {
	for p, h := range o {
		if got, ok := tab.Get(p); !ok || got != h {
			t.Fatalf("Get(%v) = %v, %v; it was set to %v", p, got, ok, h)
		}
		for _, a := range near(p) {
			agree(t, tab, o, a)
		}
	}
	for range 50 {
		agree(t, tab, o, anyAddr().Draw(t, "address"))
	}
	n := 0
	for p, h := range tab.All() {
		if n++; o[p] != h {
			t.Fatalf("All has %v to %v, the oracle %v", p, h, o[p])
		}
	}
	if n != len(o) || tab.Len() != n {
		t.Fatalf("All has %d routes, Len is %d, the oracle has %d", n, tab.Len(), len(o))
	}
}

func TestMemoryIsUsedAgain(t *testing.T) {
	tab := New()
	var first int
	for round := range 50 {
		for i := range 500 {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 4), byte(i << 4), byte(i)}), 14+i%19)
			if err := tab.Set(p, Local); err != nil {
				t.Fatal(err)
			}
		}
		for p := range maps.Collect(tab.All()) {
			tab.Delete(p)
		}
		if round == 2 {
			first = tab.Bytes()
		}
	}
	if tab.Len() != 0 || tab.Bytes() > first*5/4 {
		t.Errorf("%d routes are left in %d bytes; three rounds needed %d", tab.Len(), tab.Bytes(), first)
	}
}

func TestWrongRoutesAreRefused(t *testing.T) {
	tab := New()
	good := netip.MustParsePrefix("2001:db8::/32")
	if err := tab.Set(good, First); err != nil {
		t.Fatal(err)
	}
	for _, r := range []Route{{netip.Prefix{}, First}, {good, Again}, {netip.PrefixFrom(good.Addr(), 129), First}} {
		if tab.Set(r.Prefix, r.Hop) == nil || tab.Load([]Route{{good, Local}, r}) == nil {
			t.Errorf("%v was accepted", r)
		}
	}
	if tab.Delete(netip.Prefix{}) {
		t.Error("no prefix at all was deleted")
	}
	if h := tab.Lookup(good.Addr()); h != First {
		t.Errorf("after the refusals the hop is %v", h)
	}
}

func TestManyLookupsAreThoseOfOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, o := New(), oracle{}
		bulk(t, tab, o)
		var keys []Key
		for range rapid.IntRange(0, 70).Draw(t, "addresses") {
			if a := anyAddr().Draw(t, "address"); a.Is6() {
				hi, lo := words(a)
				keys = append(keys, Key{hi, lo})
			}
		}
		hops := make([]Hop, len(keys))
		tab.Lookup6All(keys, hops)
		for i, k := range keys {
			if one := tab.Lookup6(k.Hi, k.Lo); hops[i] != one {
				t.Fatalf("%x: %v among %d, %v alone", k, hops[i], len(keys), one)
			}
		}
	})
}
