package fib

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
)

// ErrUndeclared is returned for routes to prefixes that are not declared; [Classes.Declare] does that.
var ErrUndeclared = errors.New("the prefix is not declared")

// side is what a view has of one family.
type side struct {
	trie  *trie
	hops  []Hop
	marks marks
}

func (c *Classes) side(router int, a netip.Addr) side {
	v := &c.views[router]
	if a.Is4() {
		return side{&c.four, v.hops, v.four}
	}
	return side{&c.six, v.hops, v.six}
}

// known is the number of a declared prefix; that of length 0 always is.
func (t *trie) known(k key) (uint32, bool) {
	if k.len == 0 {
		return 0, true
	}
	return t.exact(k)
}

// Set makes a route of a router, or changes where it leads.
func (c *Classes) Set(router int, p netip.Prefix, h Hop) error {
	if err := (Route{p, h}).check(); err != nil {
		return err
	}
	s := c.side(router, p.Addr())
	i, ok := s.trie.known(keyOf(p))
	if !ok {
		return fmt.Errorf("route to %v: %w", p, ErrUndeclared)
	}
	s.marks.add(i)
	s.spread(i, h)
	return nil
}

// Delete takes a route of a router away, and reports whether it was there.
func (c *Classes) Delete(router int, p netip.Prefix) bool {
	if !p.IsValid() {
		return false
	}
	s := c.side(router, p.Addr())
	i, ok := s.trie.known(keyOf(p))
	if !ok || !s.marks.has(i) {
		return false
	}
	s.marks.drop(i)
	h := None
	if i != 0 {
		h = s.hop(s.trie.routes[i].up)
	}
	s.spread(i, h)
	return true
}

// Get is the hop of a router's route to just this prefix.
func (c *Classes) Get(router int, p netip.Prefix) (Hop, bool) {
	if !p.IsValid() {
		return None, false
	}
	s := c.side(router, p.Addr())
	i, ok := s.trie.known(keyOf(p))
	if !ok || !s.marks.has(i) {
		return None, false
	}
	return s.hop(i), true
}

// hop is what the router does with what the route is the longest for.
func (s side) hop(i uint32) Hop { return s.hops[s.trie.routes[i].hop] }

// spread sets the hop of a route, and of the longer ones that the router does not have itself.
func (s side) spread(i uint32, h Hop) {
	t := s.trie
	s.hops[t.routes[i].hop] = h
	k, at := t.key(i), 0
	if i != 0 {
		at, _ = t.search(k)
		at++
	}
	for at < len(t.order) && k.covers(t.key(t.order[at])) {
		if j := t.order[at]; s.marks.has(j) {
			at = t.past(at)
		} else {
			s.hops[t.routes[j].hop] = h
			at++
		}
	}
}

// past is the place after all that the route at a place covers.
func (t *trie) past(at int) int {
	k := t.key(t.order[at])
	for at++; at < len(t.order) && k.covers(t.key(t.order[at])); {
		at++
	}
	return at
}

// Load puts routes in place of all that a router has; it is fastest if they are sorted by address and length. Of
// several routes to one prefix the last counts. With an error nothing has changed.
func (c *Classes) Load(router int, routes []Route) error {
	numbers, err := c.numbers(routes)
	if err != nil {
		return err
	}
	v := &c.views[router]
	clear(v.six)
	clear(v.four)
	for n, r := range routes {
		s := c.side(router, r.Prefix.Addr())
		s.marks.add(numbers[n])
		s.hops[s.trie.routes[numbers[n]].hop] = r.Hop
	}
	side{&c.six, v.hops, v.six}.derive()
	side{&c.four, v.hops, v.four}.derive()
	return nil
}

// numbers are those of the routes' prefixes.
func (c *Classes) numbers(routes []Route) ([]uint32, error) {
	numbers := make([]uint32, len(routes))
	next := 0
	for n, r := range routes {
		if err := r.check(); err != nil {
			return nil, err
		}
		t, k := c.family(r.Prefix.Addr()), keyOf(r.Prefix)
		i, ok := uint32(0), k.len == 0
		switch {
		case ok:
		case next < len(t.order) && t.key(t.order[next]) == k:
			i, ok = t.order[next], true
			next++
		default:
			if next, ok = t.search(k); ok {
				i = t.order[next]
				next++
			}
		}
		if !ok {
			return nil, fmt.Errorf("route to %v: %w", r.Prefix, ErrUndeclared)
		}
		numbers[n] = i
	}
	return numbers, nil
}

// derive sets the hops of all routes that the router does not have itself.
func (s side) derive() {
	if !s.marks.has(0) {
		s.hops[s.trie.routes[0].hop] = None
	}
	for _, i := range s.trie.order {
		if r := &s.trie.routes[i]; !s.marks.has(i) {
			s.hops[r.hop] = s.hop(r.up)
		}
	}
}

// Routes are the routes that a router has itself, IPv6 first, by address and length.
func (c *Classes) Routes(router int) iter.Seq2[netip.Prefix, Hop] {
	return func(yield func(netip.Prefix, Hop) bool) {
		v := &c.views[router]
		_ = side{&c.six, v.hops, v.six}.all(false, yield) && side{&c.four, v.hops, v.four}.all(true, yield)
	}
}

func (s side) all(four bool, yield func(netip.Prefix, Hop) bool) bool {
	if s.marks.has(0) && !yield(key{}.prefix(four), s.hop(0)) {
		return false
	}
	for _, i := range s.trie.order {
		if s.marks.has(i) && !yield(s.trie.key(i).prefix(four), s.hop(i)) {
			return false
		}
	}
	return true
}
