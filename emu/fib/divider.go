package fib

// A divider deals the routes of a span out to the values of a window.
type divider struct {
	trie   *trie
	window window
	span   span // what is not dealt out yet
	covers [maxRoot]cover
	depth  int // of covers
}

// A cover is a route that holds all values of a window up to one.
type cover struct {
	route uint32
	until int
}

// part is what lies at a value; values are asked for in order. It is settled.
func (d *divider) part(v int) span {
	for d.depth > 0 && v >= d.covers[d.depth-1].until {
		d.depth--
	}
	s := &d.span
	if s.from == s.to || d.window.value(d.trie.key(d.trie.order[s.from])) != v {
		return span{s.from, s.from, d.top()}
	}
	d.short(v)
	p := span{s.from, s.from, d.top()}
	for p.to < s.to && d.window.value(d.trie.key(d.trie.order[p.to])) == v {
		p.to++
	}
	s.from = p.to
	return d.trie.settle(p)
}

// short takes the routes that begin at a value of the window and end before its bits do: they cover this value and
// others.
func (d *divider) short(v int) {
	for s := &d.span; s.from < s.to; s.from++ {
		r := d.trie.order[s.from]
		k := d.trie.key(r)
		if d.window.value(k) != v || int(k.len) >= d.window.end() {
			return
		}
		d.trie.routes[r].up = d.top()
		d.covers[d.depth] = cover{r, v + 1<<(d.window.end()-int(k.len))}
		d.depth++
	}
}

// top is the longest route that covers the present value.
func (d *divider) top() uint32 {
	if d.depth == 0 {
		return d.span.cover
	}
	return d.covers[d.depth-1].route
}
