package fib

import (
	"net/netip"
	"slices"
	"unsafe"
)

// A Class is a set of destinations that every router treats alike because the same prefix, of all that any router
// has, is the longest that holds them. The zero Class is not known: all routers have [Again] for it.
type Class uint16

// MaxClasses is how many classes there can be at a time, retired ones included.
const MaxClasses = 1<<16 - 1

// Classes are the routes of many routers, compiled. Routers are numbered from 0.
//
// Threads: Class6, Class4, Set, Delete, Load and what only reads may run at the same time on several threads, as long as
// a router is touched by one thread at a time: the one that forwards for it. They change nothing that others read.
// Declare, Trim and Release change all routers: no packet may be forwarded and nothing else called meanwhile.
//
// Equality: at every moment, the hop of a packet's class at a router is that of the longest prefix among the router's
// routes, or Again; then the class is asked for anew, and the hop of that class is. This holds for packets of
// any age, as long as Release is told the truth.
type Classes struct {
	six, four  trie // of all prefixes; the hop of a route is its class
	views      []View
	used       int     // numbers of classes that were ever in use
	free       []Class // numbers that may be used again
	retired    []retired
	generation uint64
}

// A retired class may still be in packets under way.
type retired struct {
	class      Class
	generation uint64 // as of which no packet gets it
}

// A View is what one router makes of the classes. It belongs to the router's thread.
type View struct {
	hops      []Hop
	six, four marks // routes that the router has itself; all others it takes from the next shorter one
}

// NewClasses returns classes for so many routers, all without routes.
func NewClasses(routers int) *Classes {
	c := &Classes{six: newTrie(), four: newTrie(), views: make([]View, routers), used: 1}
	c.six.routes[0].hop, c.four.routes[0].hop = Hop(c.number()), Hop(c.number())
	c.grow()
	for r := range c.views {
		c.views[r].hops[0] = Again
	}
	return c
}

// Class6 is the class of an IPv6 address, given as two numbers: its first eight bytes, highest first, and its last.
func (c *Classes) Class6(hi, lo uint64) Class { return Class(c.six.routes[c.six.find(hi, lo)].hop) }

// Class4 is the class of an IPv4 address, given as a number.
func (c *Classes) Class4(address uint32) Class {
	return Class(c.four.routes[c.four.find(uint64(address)<<32, 0)].hop)
}

// Class is the class of an address of either family; slower.
func (c *Classes) Class(a netip.Addr) Class {
	t := c.family(a)
	return Class(t.routes[t.find(words(a))].hop)
}

func (c *Classes) family(a netip.Addr) *trie {
	if a.Is4() {
		return &c.four
	}
	return &c.six
}

// View is what a router makes of the classes. It stays the router's.
func (c *Classes) View(router int) *View { return &c.views[router] }

// Hop is the hop of a class, perhaps Again.
func (v *View) Hop(c Class) Hop {
	if int(c) < len(v.hops) {
		return v.hops[c]
	}
	return Again
}

// Hops are the hops of all classes, by class. The slice is good until the next Declare.
func (v *View) Hops() []Hop { return v.hops }

// number is a class that no packet has.
func (c *Classes) number() (n Class) {
	if last := len(c.free) - 1; last >= 0 {
		n, c.free = c.free[last], c.free[:last]
		return n
	}
	c.used++
	return Class(c.used - 1)
}

// left is how many classes there are numbers for.
func (c *Classes) left() int { return MaxClasses + 1 - c.used + len(c.free) }

// grow makes room for all classes in every view.
func (c *Classes) grow() {
	for r := range c.views {
		v := &c.views[r]
		if c.used > len(v.hops) {
			size := min(max(16, c.used+c.used/8), MaxClasses+1)
			v.hops = append(slices.Grow(v.hops, size-len(v.hops)), make([]Hop, size-len(v.hops))...)
		}
		v.six = v.six.fit(len(c.six.routes))
		v.four = v.four.fit(len(c.four.routes))
	}
}

// Len is the number of classes in use.
func (c *Classes) Len() int { return c.used - 1 - len(c.free) - len(c.retired) }

// Bytes is the memory of the classes and of all views.
func (c *Classes) Bytes() int {
	n := int(unsafe.Sizeof(*c)) + c.six.bytes() + c.four.bytes() + 2*cap(c.free) + 16*cap(c.retired)
	for r := range c.views {
		v := &c.views[r]
		n += int(unsafe.Sizeof(*v)) + 2*cap(v.hops) + 8*cap(v.six) + 8*cap(v.four)
	}
	return n
}
