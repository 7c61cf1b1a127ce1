package oftables

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A flowKey is what makes two entries of a switch the same one.
type flowKey struct {
	table    uint8
	priority uint16
	match    string // canonical: see canonical
}

// An entry is a flow without its key.
type entry struct {
	cookie       uint64
	match        ofp.Match // as canonical orders it
	instructions []ofp.Instruction
	idle, hard   uint16 // seconds after which the switch takes it out: without a packet, and whatever comes; 0: never
}

func (e entry) same(o entry) bool {
	return e.cookie == o.cookie && e.idle == o.idle && e.hard == o.hard && slices.EqualFunc(e.instructions, o.instructions, sameInstruction)
}

// compare has the last table first, and in it the highest priority.
func (k flowKey) compare(o flowKey) int {
	return cmp.Or(cmp.Compare(o.table, k.table), cmp.Compare(o.priority, k.priority), cmp.Compare(k.match, o.match))
}

// flow makes an entry of owner 0.
func (t *Tables) flow(table uint8, priority uint16, punts uint32, m ofp.Match, is ...ofp.Instruction) (flowKey, entry) {
	m = canonical(m)
	return flowKey{table, priority, text(m)}, entry{cookie: cookieOf(0, punts), match: m, instructions: is}
}

// canonical is a match as it is compared: by field, bits that do not count zero, masks that say nothing left out. A
// switch gives a match back in an order of its own, and the registers of Nicira as the larger ones of the standard.
func canonical(m ofp.Match) ofp.Match {
	out := make(ofp.Match, 0, len(m))
	for _, o := range m {
		if o = canonicalOXM(packed(o)); o.Field != 0 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b ofp.OXM) int { return cmp.Compare(rank(a.Field), rank(b.Field)) })
	for i := len(out) - 1; i > 0; i-- {
		if a, b := out[i-1], out[i]; a.Field == b.Field && a.Field.Size() == 8 { // two halves of a register
			out[i-1] = canonicalOXM(ofp.UintMasked(a.Field, a.Uint()|b.Uint(), maskOf(a)|maskOf(b)))
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// packed is a register of Nicira as a half of a standard one.
func packed(o ofp.OXM) ofp.OXM {
	if o.Field>>48 != ofp.Reg(0)>>48 {
		return o // of another class
	}
	for n := range uint8(16) {
		if o.Field == ofp.Reg(n) {
			shift := 32 * (1 - n%2)
			return ofp.UintMasked(ofp.PacketReg(n/2), o.Uint()<<shift, maskOf(o)<<shift)
		}
	}
	return o
}

// maskOf is the mask of a field of up to 64 bits.
func maskOf(o ofp.OXM) (mask uint64) {
	if o.Mask() == nil {
		return 1<<(8*o.Field.Size()) - 1
	}
	for _, b := range o.Mask() {
		mask = mask<<8 | uint64(b)
	}
	return mask
}

// rank has the standard's fields before those of extensions, which need them.
func rank(f ofp.Field) ofp.Field { return f ^ 0x8000<<48 }

// canonicalOXM has field 0 where no bit counts.
func canonicalOXM(o ofp.OXM) ofp.OXM {
	mask := o.Mask()
	if mask == nil {
		return o
	}
	value, all, none := o.Value(), true, true
	for i, b := range mask {
		value[i] &= b
		all = all && b == 0xff
		none = none && b == 0
	}
	switch {
	case none:
		return ofp.OXM{}
	case all:
		return ofp.Bytes(o.Field, value, nil)
	}
	return ofp.Bytes(o.Field, value, mask)
}

// text is a canonical match as a key of maps.
func text(m ofp.Match) string {
	b := make([]byte, 0, 96)
	for _, o := range m {
		b = binary.BigEndian.AppendUint64(b, uint64(o.Field))
		b = append(b, o.Value()...)
		if mask := o.Mask(); mask != nil {
			b = append(append(b, 1), mask...)
		} else {
			b = append(b, 0)
		}
	}
	return string(b)
}

func sameInstruction(a, b ofp.Instruction) bool {
	switch a := a.(type) {
	case ofp.ApplyActions:
		b, ok := b.(ofp.ApplyActions)
		return ok && sameActions(a.Actions, b.Actions)
	case ofp.WriteActions:
		b, ok := b.(ofp.WriteActions)
		return ok && sameActions(a.Actions, b.Actions)
	case ofp.OtherInstruction:
		b, ok := b.(ofp.OtherInstruction)
		return ok && a.Kind == b.Kind && bytes.Equal(a.Data, b.Data)
	}
	switch b.(type) {
	case ofp.ApplyActions, ofp.WriteActions, ofp.OtherInstruction:
		return false
	}
	return a == b
}

func sameActions(a, b []ofp.Action) bool { return slices.EqualFunc(a, b, sameAction) }

func sameAction(a, b ofp.Action) bool {
	x, isOther := a.(ofp.OtherAction)
	y, otherToo := b.(ofp.OtherAction)
	if isOther || otherToo {
		return isOther && otherToo && x.Kind == y.Kind && bytes.Equal(x.Data, y.Data)
	}
	c, isCopy := a.(ofp.CopyField)
	d, copyToo := b.(ofp.CopyField)
	if isCopy && copyToo {
		c.Src, c.Dst, d.Src, d.Dst = ofp.Standard(c.Src), ofp.Standard(c.Dst), ofp.Standard(d.Src), ofp.Standard(d.Dst)
		return c == d
	}
	s, isSet := a.(ofp.SetField)
	r, setToo := b.(ofp.SetField)
	if isSet && setToo {
		return canonicalOXM(s.OXM) == canonicalOXM(r.OXM)
	}
	return a == b
}
