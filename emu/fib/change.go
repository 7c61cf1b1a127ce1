package fib

import (
	"math/bits"
	"slices"
	"sort"
)

// search is the place of a key in the order, and whether it is there.
func (t *trie) search(k key) (at int, ok bool) {
	return slices.BinarySearchFunc(t.order, k, func(i uint32, k key) int { return t.key(i).compare(k) })
}

// exact is the number of the route of a prefix.
func (t *trie) exact(k key) (uint32, bool) {
	if k.len == 0 {
		return 0, t.given
	}
	if at, ok := t.search(k); ok {
		return t.order[at], true
	}
	return 0, false
}

// add gives a prefix a route if it has none, and returns its number.
func (t *trie) add(k key) (number uint32, fresh bool) {
	if k.len == 0 {
		fresh, t.given = !t.given, true
		return 0, fresh
	}
	at, ok := t.search(k)
	if ok {
		return t.order[at], false
	}
	number = t.enrol(k)
	t.order = slices.Insert(t.order, at, number)
	t.rebuild(k, at-1, at+1)
	return number, true
}

// enrol gives a key a number.
func (t *trie) enrol(k key) (number uint32) {
	if n := len(t.free); n > 0 {
		number, t.free = t.free[n-1], t.free[:n-1]
	} else {
		number = uint32(len(t.routes))
		t.routes = append(t.routes, route{})
	}
	if k.len > 64 && t.lows == nil {
		t.lows = make([]uint64, 0, cap(t.routes))
	}
	if t.lows != nil {
		for len(t.lows) < len(t.routes) {
			t.lows = append(t.lows, 0)
		}
		t.lows[number] = k.lo
	}
	t.routes[number] = route{hi: k.hi, len: k.len}
	return number
}

// remove takes a prefix away, and returns the number that its route had.
func (t *trie) remove(k key) (number uint32, ok bool) {
	if k.len == 0 {
		ok, t.given = t.given, false
		t.routes[0].hop = None
		return 0, ok
	}
	at, ok := t.search(k)
	if !ok {
		return 0, false
	}
	number = t.order[at]
	t.order = slices.Delete(t.order, at, at+1)
	t.free = append(t.free, number)
	t.rebuild(k, at-1, at)
	return number, true
}

// rebuild makes anew what a key concerns; before and after are the places of its neighbours.
func (t *trie) rebuild(k key, before, after int) {
	fits := func(begin int) bool { return t.agrees(before, k, begin) || t.agrees(after, k, begin) }
	if t.empty || int(k.len) <= t.root.begin || !fits(t.root.begin) || rootWidth(len(t.order)) != t.root.width {
		t.uproot(0, len(t.slots))
		t.plant()
		return
	}
	v := t.root.value(k)
	if int(k.len) < t.root.end() {
		t.resow(k, v, v+1<<(t.root.end()-int(k.len)))
	} else if at := t.slots[v]; at < inner || !t.regrow(at&^inner, k, fits) {
		t.resow(k.cut(t.root.end()), v, v+1)
	}
}

// resow makes some values of the root anew, which have a prefix in common.
func (t *trie) resow(k key, first, last int) {
	t.uproot(first, last)
	s := t.under(k)
	t.sow(s, first, last)
}

// uproot frees all that is below some values of the root.
func (t *trie) uproot(first, last int) {
	for _, at := range t.slots[first:last] {
		if at >= inner {
			t.clear(at &^ inner)
			t.nodes.give(at&^inner, 1)
		}
	}
}

// regrow makes the lowest node anew, from the given one down, that has all routes below it that agree with the key in
// the bits before its own, and in one of whose values the key lies whole. It returns false if there is none.
func (t *trie) regrow(at uint32, k key, fits func(begin int) bool) bool {
	lowest, begin, found := uint32(0), 0, false
	for {
		n := &t.nodes.items[at]
		w := n.window()
		if n.empty || int(k.len) < w.end() || !fits(w.begin) {
			break
		}
		lowest, begin, found = at, w.begin, true
		v := w.value(k)
		if n.inner>>v&1 == 0 {
			break
		}
		at = n.child + uint32(bits.OnesCount64(n.inner&(1<<v-1)))
	}
	if found {
		s := t.under(k.cut(begin))
		t.clear(lowest)
		t.fill(lowest, s)
	}
	return found
}

// agrees reports whether the route at a place of the order has the first n bits of a key, and more.
func (t *trie) agrees(place int, k key, n int) bool {
	if place < 0 || place >= len(t.order) {
		return false
	}
	o := t.key(t.order[place])
	return int(o.len) > n && o.common(k) >= n
}

// under are the routes within a prefix and longer than it, and their cover.
func (t *trie) under(k key) (s span) {
	s.from = sort.Search(len(t.order), func(i int) bool { return t.key(t.order[i]).compare(k) > 0 })
	s.to = s.from + sort.Search(len(t.order)-s.from, func(i int) bool { return !k.covers(t.key(t.order[s.from+i])) })
	s.cover = t.over(s.from-1, k)
	if last := s.from - 1; last >= 0 && t.key(t.order[last]) == k {
		t.routes[s.cover].up = t.over(last-1, k) // it may be new
	}
	return s
}

// over is the longest route that covers a key, from the place of the last route before it.
func (t *trie) over(place int, k key) uint32 {
	if place < 0 {
		return 0
	}
	i := t.order[place]
	for !t.key(i).covers(k) {
		i = t.routes[i].up
	}
	return i
}

// clear frees all that is below a node.
func (t *trie) clear(at uint32) {
	n := t.nodes.items[at]
	children := bits.OnesCount64(n.inner)
	for i := range children {
		t.clear(n.child + uint32(i))
	}
	t.nodes.give(n.child, children)
	t.leaves.give(n.leaf, bits.OnesCount64(n.runs))
}

// load puts other routes in place of all that there are.
func (t *trie) load(routes []keyed) {
	routes = tidy(routes)
	*t = newTrie()
	t.routes = append(make([]route, 0, len(routes)+1), route{})
	t.order = make([]uint32, 0, len(routes))
	for _, r := range routes {
		if r.len == 0 {
			t.given, t.routes[0].hop = true, r.hop
			continue
		}
		i := t.enrol(r.key)
		t.routes[i].hop = r.hop
		t.order = append(t.order, i)
	}
	t.plant()
	t.nodes.fit()
	t.leaves.fit()
}
