package fib

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ErrFull is returned when there are more prefixes than classes can be. Routers then have to look up their own
// tables: [Classes.Routes] has what to fill them with.
var ErrFull = errors.New("too many prefixes for destination classes")

// Declare makes classes of prefixes, before any router can have a route to them. Destinations of which a longer
// prefix takes a part are a new class, too: the old one is retired, and Again in all routers. Prefixes that are known
// change nothing. With an error nothing has changed.
func (c *Classes) Declare(prefixes ...netip.Prefix) error {
	var six, four []key
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			return fmt.Errorf("declare %v: the prefix is not valid; expected an address and a length that fits it", p)
		case p.Addr().Is4():
			four = append(four, keyOf(p))
		default:
			six = append(six, keyOf(p))
		}
	}
	a, b := c.six.unknown(six), c.four.unknown(four)
	if need := a.numbers() + b.numbers(); need > c.left() {
		return fmt.Errorf("%w: %d prefixes more need %d numbers of classes; %d of %d are left, %d wait for release",
			ErrFull, len(a.fresh)+len(b.fresh), need, c.left(), MaxClasses, len(c.retired))
	}
	if len(a.fresh)+len(b.fresh) > 0 {
		c.generation++
		c.split(a)
		c.split(b)
	}
	return nil
}

// A splitting is what new prefixes do to the old ones.
type splitting struct {
	trie  *trie
	fresh []key    // sorted
	torn  []uint32 // routes of which the fresh ones take a part
}

func (s *splitting) numbers() int { return len(s.fresh) + len(s.torn) }

// unknown finds out what keys split.
func (t *trie) unknown(keys []key) splitting {
	s := splitting{trie: t}
	slices.SortFunc(keys, key.compare)
	torn := make(map[uint32]bool)
	for _, k := range slices.Compact(keys) {
		if at, known := t.search(k); k.len > 0 && !known {
			s.fresh = append(s.fresh, k)
			if i := t.over(at-1, k); !torn[i] {
				torn[i] = true
				s.torn = append(s.torn, i)
			}
		}
	}
	return s
}

// split gives the fresh prefixes and the torn ones new classes, and has every router treat them as it did the old.
func (c *Classes) split(s splitting) {
	t := s.trie
	numbers := t.plantMore(s.fresh)
	var derived []derivation
	for _, i := range s.torn {
		old := Class(t.routes[i].hop)
		c.retired = append(c.retired, retired{old, c.generation})
		t.routes[i].hop = Hop(c.number())
		derived = append(derived, derivation{Class(t.routes[i].hop), old})
	}
	for _, i := range numbers { // shorter ones come first
		t.routes[i].hop = Hop(c.number())
		derived = append(derived, derivation{Class(t.routes[i].hop), Class(t.routes[t.routes[i].up].hop)})
	}
	c.grow()
	for r := range c.views {
		c.views[r].inherit(derived, len(s.torn))
	}
}

// A derivation is a new class that begins as another is.
type derivation struct{ class, of Class }

// inherit gives new classes their hops; the first of them take the place of what they inherit from.
func (v *View) inherit(derived []derivation, torn int) {
	for _, h := range derived {
		v.hops[h.class] = v.hops[h.of]
	}
	for _, h := range derived[:torn] {
		v.hops[h.of] = Again
	}
}

// plantMore adds sorted new prefixes, and returns the numbers of their routes.
func (t *trie) plantMore(fresh []key) (numbers []uint32) {
	if len(fresh) < 1+len(t.order)/64 {
		for _, k := range fresh {
			i, _ := t.add(k)
			numbers = append(numbers, i)
		}
		return numbers
	}
	for _, k := range fresh {
		numbers = append(numbers, t.enrol(k))
	}
	t.order = append(t.order, numbers...)
	slices.SortFunc(t.order, func(a, b uint32) int { return t.key(a).compare(t.key(b)) })
	t.uproot(0, len(t.slots))
	t.plant()
	return numbers
}

// Trim forgets prefixes to which no router has a route of its own.
func (c *Classes) Trim() {
	c.generation++
	c.trim(&c.six, func(v *View) marks { return v.six })
	c.trim(&c.four, func(v *View) marks { return v.four })
}

func (c *Classes) trim(t *trie, of func(*View) marks) {
	held := marks{}.fit(len(t.routes))
	for r := range c.views {
		for i, word := range of(&c.views[r]) {
			held[i] |= word
		}
	}
	for _, i := range slices.Clone(t.order) {
		if !held.has(i) {
			c.retire(Class(t.routes[i].hop))
			t.remove(t.key(i))
		}
	}
}

func (c *Classes) retire(old Class) {
	c.retired = append(c.retired, retired{old, c.generation})
	for r := range c.views {
		c.views[r].hops[old] = Again
	}
}

// Generation counts the times at which classes were retired.
func (c *Classes) Generation() uint64 { return c.generation }

// Release says that no packet is under way any more that was classified before a generation: the numbers of classes
// retired until then may be used again. Whoever can look at all packets under way may instead set their classes to
// 0 and release the present generation.
func (c *Classes) Release(generation uint64) {
	kept := c.retired[:0]
	for _, r := range c.retired {
		if r.generation <= generation {
			c.free = append(c.free, r.class)
		} else {
			kept = append(kept, r)
		}
	}
	c.retired = kept
}
