package fib

// A Key is an IPv6 address as two numbers: its first eight bytes, highest first, and its last.
type Key struct{ Hi, Lo uint64 }

// Lookup6All finds the hops of many IPv6 addresses, of which as many as there are hops. It is faster than one by one
// where tables lie beyond the first cache: the machine waits for several at a time.
func (t *Table) Lookup6All(keys []Key, hops []Hop) { findAll(&t.six, keys, hops) }

// Class6All finds the classes of many IPv6 addresses, of which as many as there are classes.
func (c *Classes) Class6All(keys []Key, classes []Class) { findAll(&c.six, keys, classes) }

// few is how many addresses are looked up side by side.
const few = 16

// findAll finds the hops of routes, which may mean classes.
func findAll[H Hop | Class](t *trie, keys []Key, hops []H) {
	var at [few]uint32
	keys = keys[:len(hops)]
	for len(keys) > 0 {
		n := min(few, len(keys))
		t.start(keys[:n], &at)
		for i, k := range keys[:n] {
			if at[i] >= inner {
				at[i] = t.descend(at[i]&^inner, k.Hi, k.Lo)
			}
		}
		for i, k := range keys[:n] {
			hops[i] = H(t.routes[t.climb(at[i], k.Hi, k.Lo)].hop)
		}
		keys, hops = keys[n:], hops[n:]
	}
}

// start is what the root has for some addresses.
func (t *trie) start(keys []Key, at *[few]uint32) {
	slots, shift, mask, low := t.slots, t.root.shift&63, t.root.mask, t.root.low
	for i, k := range keys {
		w := k.Hi
		if low {
			w = k.Lo
		}
		at[i&(few-1)] = slots[w>>shift&mask]
	}
}
