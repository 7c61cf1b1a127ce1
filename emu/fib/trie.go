package fib

import "math/bits"

// A trie finds the longest prefix that holds an address. It is a poptrie (Asai and Ohara 2015: a table for the first
// bits, then 64 ways at a node, two bitmaps in place of pointers, equal neighbours among the leaves stored once)
// that looks only at bits in which its prefixes differ. So it is as deep as there are many prefixes, not as deep as
// they are long. In return the prefix that a walk ends at must be compared with the address, and where it does not
// hold it, the next shorter one that covers that prefix is tried. No other can: an address that lies in a prefix
// agrees with it in all bits that are looked at on the way to it.
type trie struct {
	root   window
	slots  []uint32 // for each value of the root: a route, or a node if inner is set
	nodes  pool[node, *node]
	leaves pool[leaf, *leaf]
	routes []route  // by number; 0 is the prefix of length 0, which is always there
	lows   []uint64 // the routes' last 64 bits, nil as long as no prefix is longer than 64 bits
	order  []uint32 // numbers of the routes but 0, sorted
	free   []uint32 // numbers of routes
	given  bool     // somebody set route 0
	empty  bool     // the root divides nothing
}

// inner marks a slot of the root that is the number of a node.
const inner = 1 << 31

// A node divides addresses by six of their bits.
type node struct {
	inner uint64 // bit i: what has value i goes on at a node
	runs  uint64 // bit i: the leaf of value i is another than the leaf before
	child uint32 // the first of its nodes
	leaf  uint32 // the first of its leaves
	shift uint8  // of the word, to have the six bits at the right
	low   bool   // they are bits of the low word
	empty bool   // divides nothing: there is one leaf
}

// A leaf is the number of a route.
type leaf uint32

// A route is a prefix and where it leads. Its last 64 bits lie in lows.
type route struct {
	hi  uint64
	up  uint32 // the longest route that covers it
	hop Hop
	len uint8
}

func newTrie() trie {
	t := trie{routes: make([]route, 1)}
	t.leaves.items = make([]leaf, 1) // block 0 means none
	t.nodes.items = make([]node, 1)
	t.plant()
	return t
}

// find is the number of the longest route that holds the address.
func (t *trie) find(hi, lo uint64) uint32 {
	w := hi
	if t.root.low {
		w = lo
	}
	i := t.slots[w>>(t.root.shift&63)&t.root.mask]
	if i >= inner {
		i = t.descend(i&^inner, hi, lo)
	}
	return t.climb(i, hi, lo)
}

// descend walks from a node to a leaf.
func (t *trie) descend(i uint32, hi, lo uint64) uint32 {
	for {
		n := &t.nodes.items[i]
		w := hi
		if n.low {
			w = lo
		}
		turn := ^(w >> (n.shift & 63)) & 63 // moves the bit of the value to the top, what is above it out
		x := n.inner << turn
		if int64(x) >= 0 {
			return uint32(t.leaves.items[n.leaf+uint32(bits.OnesCount64(n.runs<<turn))-1])
		}
		i = n.child + uint32(bits.OnesCount64(x)) - 1
	}
}

// climb is the first route from i up that holds the address.
func (t *trie) climb(i uint32, hi, lo uint64) uint32 {
	for {
		r := &t.routes[i]
		x := hi ^ r.hi
		if r.len <= 64 {
			x >>= 64 - r.len
		} else {
			x |= (lo ^ t.lows[i]) >> (128 - r.len)
		}
		if x == 0 {
			return i
		}
		i = r.up
	}
}

// key is the prefix of a route.
func (t *trie) key(i uint32) key {
	k := key{hi: t.routes[i].hi, len: t.routes[i].len}
	if k.len > 64 {
		k.lo = t.lows[i]
	}
	return k
}
