package ofp

import "strings"

// A Match is what a packet must be like: all of its fields hold. The empty one matches every packet. A
// field stands behind those that it needs (IPv6Dst behind EthType).
type Match []OXM

// Get finds the field.
func (m Match) Get(f Field) (OXM, bool) {
	for _, o := range m {
		if o.Field == f {
			return o, true
		}
	}
	return OXM{}, false
}

// Uint is the field's value as a number, 0 if the field is not there.
func (m Match) Uint(f Field) uint64 {
	o, _ := m.Get(f)
	return o.Uint()
}

func (m Match) String() string {
	if len(m) == 0 {
		return "any"
	}
	parts := make([]string, len(m))
	for i, o := range m {
		parts[i] = o.String()
	}
	return strings.Join(parts, ",")
}

const matchOXM = 1

// layout is type, length, fields, and zeros that the length leaves out.
func (m *Match) layout(c *codec) {
	c.aligned(2, func() {
		kind := uint16(matchOXM)
		u16(c, &kind)
		c.length()
		if kind != matchOXM {
			c.fail(ErrValue, "match of type %d, want %d", kind, matchOXM)
		}
		list(c, (*[]OXM)(m), func(o *OXM) { o.layout(c) })
	})
}
