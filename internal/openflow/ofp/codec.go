package ofp

import (
	"encoding/binary"
	"fmt"
)

// A codec reads a message or writes one, along the same description of its layout. After the first
// error it reads zeros and writes nothing that anybody sees.
type codec struct {
	v       Version
	writing bool
	b       []byte // reading: the message; writing: what Append was given and what we wrote behind it
	base    int    // where the message begins in b
	at      int    // reading: the next byte
	end     int    // reading: where the innermost record ends
	inner   bool   // the message is inside another
	err     error
}

func (c *codec) fail(err error, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("at byte %d: %s: %w", c.pos(), fmt.Sprintf(format, args...), err)
	}
}

// pos is how many bytes of the message are behind us.
func (c *codec) pos() int {
	if c.writing {
		return len(c.b) - c.base
	}
	return c.at - c.base
}

// left is how many bytes the innermost record still has; 0 after an error, so that loops end.
func (c *codec) left() int {
	if c.err != nil || c.writing {
		return 0
	}
	return c.end - c.at
}

// take returns the next n bytes to read, nil if they are not there.
func (c *codec) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.end-c.at {
		c.fail(ErrLength, "%d bytes left, want %d", c.end-c.at, n)
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

// peek16 looks at the 16 bits that are off bytes ahead, 0 if they are not there.
func (c *codec) peek16(off int) uint16 {
	if c.left() < off+2 {
		return 0
	}
	return binary.BigEndian.Uint16(c.b[c.at+off:])
}

func (c *codec) peek32(off int) uint32 {
	return uint32(c.peek16(off))<<16 | uint32(c.peek16(off+2))
}

func u8[T ~uint8](c *codec, p *T) {
	if c.writing {
		c.b = append(c.b, byte(*p))
	} else if b := c.take(1); b != nil {
		*p = T(b[0])
	}
}

func u16[T ~uint16](c *codec, p *T) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint16(c.b, uint16(*p))
	} else if b := c.take(2); b != nil {
		*p = T(binary.BigEndian.Uint16(b))
	}
}

func u32[T ~uint32](c *codec, p *T) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint32(c.b, uint32(*p))
	} else if b := c.take(4); b != nil {
		*p = T(binary.BigEndian.Uint32(b))
	}
}

func u64[T ~uint64](c *codec, p *T) {
	if c.writing {
		c.b = binary.BigEndian.AppendUint64(c.b, uint64(*p))
	} else if b := c.take(8); b != nil {
		*p = T(binary.BigEndian.Uint64(b))
	}
}

// pad is n bytes of nothing: sent as zeros, not looked at on arrival.
func (c *codec) pad(n int) {
	if !c.writing {
		c.take(n)
		return
	}
	for range n {
		c.b = append(c.b, 0)
	}
}

// raw is as many bytes as *p has, or as the record has left.
func (c *codec) raw(p *[]byte) {
	if c.writing {
		c.b = append(c.b, *p...)
	} else if n := c.left(); n > 0 {
		*p = append([]byte(nil), c.take(n)...)
	}
}

// text is a name in n bytes, filled up with zeros.
func (c *codec) text(n int, p *string) {
	if c.writing {
		if len(*p) > n {
			c.fail(ErrLength, "%.20q has %d bytes, at most %d fit", *p, len(*p), n)
			return
		}
		c.b = append(c.b, *p...)
		c.pad(n - len(*p))
		return
	}
	b := c.take(n)
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	*p = string(b)
}

// only fails where the message is older than v and what it says, or is to say, needs v.
func (c *codec) only(v Version, something bool, what string) {
	if !something || c.v >= v {
		return
	}
	err := ErrValue
	if c.writing {
		err = ErrUnsayable
	}
	c.fail(err, "%s needs %v, this is %v", what, v, c.v)
}
