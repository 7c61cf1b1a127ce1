package ofp

import (
	"fmt"
	"strings"
)

const masks = 1 << 8 // of an OXM header

// layoutID is an OXM header without value: it names a field. It returns the header's mask bit and its
// length as said; writing, masked is what to say.
func layoutID(c *codec, f *Field, masked bool) bool {
	var h, experimenter uint32
	if c.writing {
		w := *f
		if c.v < V15 {
			w = w.of13()
		}
		n := w.Size()
		if masked {
			h, n = masks, 2*n
		}
		if w>>48 == classExperimenter {
			n += 4
		}
		if n > 0xff {
			c.fail(ErrLength, "%v with %d bytes, at most 255 can be said", *f, n)
		}
		h |= uint32(w>>48)<<16 | uint32(w>>40&0x7f)<<9 | uint32(n)
		experimenter = uint32(w)
	}
	u32(c, &h)
	if h>>16 == classExperimenter {
		u32(c, &experimenter)
	}
	if !c.writing {
		*f = c.field(h, experimenter)
	}
	return h&masks != 0
}

// field is what a header that was read names.
func (c *codec) field(h, experimenter uint32) Field {
	n := h & 0xff
	if h>>16 == classExperimenter {
		n -= 4
	}
	odd := h&masks != 0 && n%2 != 0
	if h&masks != 0 {
		n /= 2
	}
	f := Field(h>>16)<<48 | Field(h>>9&0x7f)<<40 | Field(n&0xff)<<32 | Field(experimenter)
	if known, ok := f.sized(); !ok {
		c.fail(ErrLength, "field %v of %d bytes, want %d", known, n, known.Size())
	}
	if n == 0 || n > 0xff || odd {
		c.fail(ErrLength, "field %v with a body of %d bytes", f, h&0xff)
	}
	if c.v < V15 {
		f = f.now()
	}
	return f
}

// layout is the header, the value and the mask.
func (o *OXM) layout(c *codec) {
	if c.writing {
		layoutID(c, &o.Field, o.masked)
		if len(o.value) != o.Field.Size() {
			c.fail(ErrLength, "%v with %d bytes, want %d: use Uint or Bytes", o.Field, len(o.value), o.Field.Size())
		}
		c.b = append(append(c.b, o.value...), o.mask...)
		return
	}
	o.masked = layoutID(c, &o.Field, false)
	o.value = string(c.take(o.Field.Size()))
	if o.masked {
		o.mask = string(c.take(o.Field.Size()))
	}
}

// String shows a field as ovs-ofctl does: ipv6_dst=fd5d::/64.
func (o OXM) String() string {
	if o.Field.form() == address && o.Prefix().IsValid() {
		if !o.masked {
			return fmt.Sprintf("%v=%v", o.Field, o.Addr())
		}
		return fmt.Sprintf("%v=%v", o.Field, o.Prefix())
	}
	s := fmt.Sprintf("%v=%s", o.Field, o.show(o.value))
	if o.masked {
		s += "/" + o.show(o.mask)
	}
	return s
}

func (o OXM) show(b string) string {
	switch part := (OXM{Field: o.Field, value: b}); {
	case o.Field.form() == hardware:
		return part.HW().String()
	case o.Field.form() == address:
		return part.Addr().String()
	case o.Field.form() == decimal && !o.masked:
		return fmt.Sprint(part.Uint())
	case len(b) <= 8:
		return fmt.Sprintf("%#x", part.Uint())
	}
	return "0x" + strings.TrimLeft(fmt.Sprintf("%x", b), "0")
}
