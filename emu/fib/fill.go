package fib

import "math/bits"

// A span is some routes that lie together in the order, and the longest route that covers them all.
type span struct {
	from, to int
	cover    uint32
}

// settle takes off the routes that cover all of the rest: the last of them is the cover of the rest.
func (t *trie) settle(s span) span {
	for s.from < s.to && t.key(t.order[s.from]).covers(t.key(t.order[s.to-1])) {
		t.routes[t.order[s.from]].up = s.cover
		s.cover = t.order[s.from]
		s.from++
	}
	return s
}

// differ is the first bit in which the routes of a settled span differ. No route of it ends before that bit.
func (t *trie) differ(s span) int { return t.key(t.order[s.from]).common(t.key(t.order[s.to-1])) }

// plant makes the root and all below it.
func (t *trie) plant() {
	s := t.settle(span{to: len(t.order)})
	t.root = windowAt(0, minRoot)
	if t.empty = s.from == s.to; !t.empty {
		t.root = windowAt(t.differ(s), rootWidth(len(t.order)))
	}
	if n := 1 << t.root.width; n == len(t.slots) {
		clear(t.slots)
	} else {
		t.slots = make([]uint32, n)
	}
	t.sow(s, 0, len(t.slots))
}

// sow makes a part of the root: the values from the first up to the last, to which the routes of a span belong.
func (t *trie) sow(s span, first, last int) {
	d := divider{trie: t, window: t.root, span: s}
	for v := first; v < last; v++ {
		part := d.part(v)
		t.slots[v] = part.cover
		if part.from < part.to {
			at := t.nodes.take(1)
			t.slots[v] = at | inner
			t.fill(at, part)
		}
	}
}

// fill makes a node of a span, and the nodes below it.
func (t *trie) fill(at uint32, s span) {
	if s = t.settle(s); s.from == s.to {
		leaf := t.leaves.take(1)
		t.leaves.items[leaf] = leafOf(s)
		t.nodes.items[at] = node{runs: 1, leaf: leaf, empty: true, shift: 64 - stride}
		return
	}
	var parts [1 << stride]span
	n := t.divide(s, &parts)
	n.child = t.nodes.take(bits.OnesCount64(n.inner))
	n.leaf = t.leaves.take(bits.OnesCount64(n.runs))
	t.nodes.items[at] = n
	leaf := n.leaf
	for x := n.runs; x != 0; x &= x - 1 {
		t.leaves.items[leaf] = leafOf(parts[bits.TrailingZeros64(x)])
		leaf++
	}
	child := n.child
	for x := n.inner; x != 0; x &= x - 1 {
		t.fill(child, parts[bits.TrailingZeros64(x)])
		child++
	}
}

func leafOf(s span) leaf { return leaf(s.cover) }

// divide finds out what a node looks like, and what lies at each of its values.
func (t *trie) divide(s span, parts *[1 << stride]span) node {
	d := divider{trie: t, window: windowAt(t.differ(s), stride), span: s}
	n := node{shift: d.window.shift, low: d.window.low}
	last, any := uint32(0), false
	for v := range parts {
		p := d.part(v)
		parts[v] = p
		if p.from < p.to {
			n.inner |= 1 << v
		} else if !any || p.cover != last {
			n.runs |= 1 << v
			last, any = p.cover, true
		}
	}
	return n
}
