package ofp

import (
	"encoding/binary"
	"math"
)

// within lets do read the next n bytes, and all of them.
func (c *codec) within(n int, do func()) {
	if c.err != nil {
		return
	}
	if n < 0 || n > c.end-c.at {
		c.fail(ErrLength, "%d bytes left, want %d", c.end-c.at, n)
		return
	}
	outer := c.end
	c.end = c.at + n
	do()
	if c.err == nil && c.at != c.end {
		c.fail(ErrLength, "%d bytes more than belong there", c.end-c.at)
	}
	c.end = outer
}

// record is a part that begins here and says its own length, in the 16 bits that lie lenAt bytes into
// it; do calls length there.
func (c *codec) record(lenAt int, do func()) {
	if !c.writing {
		if c.left() < lenAt+2 {
			c.fail(ErrLength, "%d bytes left where something begins", c.left())
			return
		}
		n := int(c.peek16(lenAt))
		if n < lenAt+2 {
			c.fail(ErrLength, "a part of %d bytes", n)
			return
		}
		c.within(n, do)
		return
	}
	start := len(c.b)
	do()
	c.patch(start+lenAt, len(c.b)-start)
}

// patch fills in a length that was not known before.
func (c *codec) patch(at, n int) {
	if n > math.MaxUint16 {
		c.fail(ErrLength, "a part of %d bytes, at most %d can be said", n, math.MaxUint16)
		return
	}
	if c.err == nil {
		binary.BigEndian.PutUint16(c.b[at:], uint16(n))
	}
}

// length is the place of the innermost record's length.
func (c *codec) length() { c.pad(2) }

// aligned is a record whose length leaves out the zeros that fill it up to a multiple of 8 bytes.
func (c *codec) aligned(lenAt int, do func()) {
	start := c.pos()
	c.record(lenAt, do)
	c.fill(start)
}

// fill is the zeros up to a multiple of 8 bytes, counted from start.
func (c *codec) fill(start int) { c.pad(-(c.pos() - start) & 7) }

// rounded is a record whose length counts the zeros that fill it up to a multiple of 8 bytes.
func (c *codec) rounded(lenAt int, do func()) {
	c.record(lenAt, func() {
		start := c.pos()
		if c.left()%8 != 0 {
			c.fail(ErrLength, "a part of %d bytes, want a multiple of 8", c.left())
		}
		do()
		if c.writing || c.left() < 8 {
			c.fill(start)
		}
	})
}

// span is a part whose length in bytes stands before it: its place was marked by spanLen.
func (c *codec) span(mark int, n uint16, do func()) {
	if !c.writing {
		c.within(int(n), do)
		return
	}
	start := len(c.b)
	do()
	c.patch(mark, len(c.b)-start)
}

// spanLen is the place of the length of a part that comes later.
func (c *codec) spanLen(n *uint16) (mark int) {
	mark = len(c.b)
	*n = 0 // its writer does not know it yet
	u16(c, n)
	return mark
}

// list is as many elements as the slice has, or as the innermost record holds.
func list[T any](c *codec, s *[]T, each func(*T)) {
	if c.writing {
		var e T // a copy: what is written may be somebody else's as well, a flow's instructions for one, and is only read
		for _, e = range *s {
			each(&e)
		}
		return
	}
	for c.left() > 0 {
		var e T
		each(&e)
		*s = append(*s, e)
	}
}
