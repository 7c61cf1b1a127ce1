package ofp

import (
	"math/bits"
	"strings"
)

// Hello is the first message in both directions. Its header carries the highest version that its
// sender speaks, the bitmap all of them.
type Hello struct {
	Versions VersionBitmap
}

// A VersionBitmap has bit n set for wire version n; 0 is no bitmap, as sent by peers of 1.0 to 1.3.0.
type VersionBitmap uint64

// Versions makes a bitmap.
func Versions(vs ...Version) (set VersionBitmap) {
	for _, v := range vs {
		set |= 1 << v
	}
	return set
}

// Has reports whether v is in the bitmap.
func (s VersionBitmap) Has(v Version) bool { return v < 64 && s&(1<<v) != 0 }

func (s VersionBitmap) String() string {
	var names []string
	for v := range Version(64) {
		if s.Has(v) {
			names = append(names, v.String())
		}
	}
	return strings.Join(names, " and ")
}

// Negotiate is the version that both speak, the highest if there are several: ours is our bitmap,
// theirs the message that the peer sent (specification 1.5.1, §6.3.1).
func Negotiate(ours VersionBitmap, theirs Message) (Version, bool) {
	hello, ok := theirs.Body.(Hello)
	if !ok {
		return 0, false
	}
	if hello.Versions == 0 {
		hello.Versions = Versions(min(ours.Highest(), theirs.Version))
	}
	shared := ours & hello.Versions
	if shared == 0 {
		return 0, false
	}
	return shared.Highest(), true
}

// Highest is the highest version of a bitmap that is not empty.
func (s VersionBitmap) Highest() Version { return Version(bits.Len64(uint64(s)) - 1) }

// Type implements Body.
func (Hello) Type(Version) Type { return TypeHello }

const bitmapElement = 1

// layout passes over elements that are not known, and over the end of one that says it is longer than
// what is there: a HELLO is all that two versions of the protocol must understand of each other.
func (m *Hello) layout(c *codec) {
	if c.writing {
		if m.Versions != 0 {
			m.appendBitmap(c)
		}
		return
	}
	for c.left() >= 4 {
		kind, n := c.peek16(0), int(c.peek16(2))
		if n < 4 || n > c.left() {
			break
		}
		if kind == bitmapElement {
			c.within(n, func() { m.readBitmap(c) })
		} else {
			c.take(n)
		}
		c.take(min(-n&7, c.left()))
	}
	c.take(c.left())
}

func (m *Hello) appendBitmap(c *codec) {
	kind, n, low, high := uint16(bitmapElement), uint16(8), uint32(m.Versions), uint32(m.Versions>>32)
	if high != 0 {
		n = 12
	}
	u16(c, &kind)
	u16(c, &n)
	u32(c, &low)
	if high != 0 {
		u32(c, &high)
		c.pad(4)
	}
}

func (m *Hello) readBitmap(c *codec) {
	var low, high uint32
	c.take(4)
	if c.left() >= 4 {
		u32(c, &low)
	}
	if c.left() >= 4 {
		u32(c, &high)
	}
	c.take(c.left())
	m.Versions = VersionBitmap(high)<<32 | VersionBitmap(low)
}
