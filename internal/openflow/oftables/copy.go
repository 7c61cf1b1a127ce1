package oftables

import (
	"hash/fnv"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A copying is how a packet is punted and goes on as if nobody had looked: a register's bit says that it was copied
// already, and a group of two buckets, each with a packet of its own, has it looked up again and punts it. The meter is
// in the bucket that punts: what it drops goes on all the same.
type copying struct {
	bit   uint8
	group ofp.GroupID
}

// mostCopies is how many entries may copy: each has a bit, and a packet that all of them copy is looked up so often
// within itself (Open vSwitch ends that at a depth of 64).
const mostCopies = 16

// copies is the register of those bits, in its lower half; the others are left to modules.
var copies = ofp.PacketReg(7)

// copied makes an entry that punts one that copies; ok is false where the switch cannot, or too many do already.
func (t *Tables) copied(o *owned, key flowKey, e entry) (flowKey, entry, bool) {
	c, ok := o.copies[key]
	if !ok && t.canCopy() {
		c, ok = t.newCopy(key, e)
	}
	if !ok {
		o.uncopied++
		return key, e, false
	}
	o.copies[key] = c
	t.groups.set(c.group, copyGroup(key.table, e))
	bit := uint64(1) << c.bit
	m := canonical(append(ofp.Match{ofp.UintMasked(copies, 0, bit)}, e.match...))
	is := ofp.Apply(ofp.SetField{OXM: ofp.UintMasked(copies, bit, bit)}, ofp.Group{ID: c.group})
	return flowKey{key.table, key.priority, text(m)}, entry{e.cookie, m, is, e.idle, e.hard}, true
}

func (t *Tables) canCopy() bool { return t.o.Extensions && t.masks() }

func copyGroup(table uint8, e entry) group {
	punt, _ := e.instructions[0].(ofp.ApplyActions)
	return group{kind: ofp.GroupAll, buckets: []ofp.Bucket{
		{ID: 0, Actions: []ofp.Action{ofp.Resubmit{Table: table}}},
		{ID: 1, Actions: punt.Actions},
	}}
}

// newCopy finds a bit and a group that nobody has.
func (t *Tables) newCopy(key flowKey, e entry) (copying, bool) {
	h := fnv.New64a()
	h.Write([]byte{key.table, byte(key.priority >> 8), byte(key.priority)})
	h.Write([]byte(key.match))
	g := copyGroup(key.table, e)
	id, free := numbered(h.Sum64(), 0, func(id uint32) bool { return t.groups.taken(ofp.GroupID(id), g) })
	if !free {
		return copying{}, false
	}
	for bit := range uint8(mostCopies) {
		if t.copyBits&(1<<bit) == 0 {
			t.copyBits |= 1 << bit
			return copying{bit, ofp.GroupID(id)}, true
		}
	}
	return copying{}, false
}

// dropCopies gives back what an owner's entries do not copy any more.
func (t *Tables) dropCopies(o *owned, stay map[flowKey]struct{}) {
	for key, c := range o.copies {
		if _, ok := stay[key]; !ok {
			t.groups.unset(c.group)
			t.copyBits &^= 1 << c.bit
			delete(o.copies, key)
		}
	}
}
