package oftables

import (
	"encoding/binary"
	"hash/fnv"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// A list is targets, of which a flow meets one. All resolutions with the same targets share it, so that ten
// thousand services on the same hosts need one group.
//
// An Open vSwitch has a select group for it, with the selection dp_hash: a table of slots, a power of two up to 256
// that is at least the weights' sum divided by the least of them. We make weights whose sum is the wanted number of
// slots, and split a bucket in two of which one has 1, so that each bucket gets exactly its weight in slots. (By
// the method "hash" the weights 1:2:3 come out as 5:32:63, without a method UDP is not divided at all, and where the
// sum is more than 256 times the least weight the switch falls back to that silently.)
//
// What a group cannot hold closely (twenty targets of the same weight, one of 1:1000), what has no ports, and all
// lists of switches without extensions are entries of the table choose: some low bits of the source each. The
// sources of first packets are socketIDs, 63 random bits.
type list struct {
	targets []resolve.Target
	weights []uint32
	division
	refs     int
	group    ofp.GroupID // 0: the table choose divides it
	mark     uint32      // in the tables choose and returned; the parts' follow
	returned int         // entries for what its targets return
}

// A listKey tells lists apart.
type listKey struct {
	targets  string     // locators and weights
	suffix   sid.Suffix // where a switch writes whole addresses alone, each service has its own; else 0
	bySource bool
}

func keyOfTargets(targets []resolve.Target) string {
	b := make([]byte, 0, 12*len(targets))
	common := uint32(0)
	for _, t := range targets {
		common = gcd(t.Weight, common)
	}
	for _, t := range targets {
		b = binary.BigEndian.AppendUint64(b, uint64(t.Locator))
		b = binary.BigEndian.AppendUint32(b, t.Weight/common)
	}
	return string(b)
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// hash depends on the targets alone, also after a restart.
func (k listKey) hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(k.targets))
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(k.suffix)))
	return h.Sum64()
}

// listOf takes the list of targets, and makes it where nobody has it yet. release gives it back.
func (t *Tables) listOf(targets []resolve.Target, suffix sid.Suffix, bySource bool) listKey {
	key := listKey{targets: keyOfTargets(targets), bySource: bySource || len(targets) == 1 || !t.o.Extensions || !t.masks()}
	if !t.masks() {
		key.suffix = suffix
	}
	l := t.lists[key]
	if l == nil {
		l = t.newList(key, targets)
		t.lists[key] = l
	}
	l.refs++
	delete(t.idle, key)
	return key
}

func (t *Tables) newList(key listKey, targets []resolve.Target) *list {
	l := &list{targets: targets}
	for _, x := range targets {
		l.weights = append(l.weights, x.Weight)
	}
	if key.bySource || !t.addGroup(l, key.hash()) {
		l.division, _ = divide(l.weights, 1, mostSlots)
	}
	l.mark = key.mark()
	for _, taken := t.listIDs[l.mark]; taken || l.mark < firstList; _, taken = t.listIDs[l.mark] {
		l.mark += markRoom
	}
	t.listIDs[l.mark] = key
	t.eachChoice(l, key.suffix, t.flows.set)
	t.addReturned(l, key.suffix)
	return l
}

// mark is the one that a list has unless another has it: with a group or without, it is another.
func (k listKey) mark() uint32 {
	h := k.hash()
	if k.bySource {
		h *= 0x9E3779B97F4A7C15
	}
	return uint32(h>>16) &^ (markRoom - 1)
}

// addGroup makes a list a group, if one can hold it.
func (t *Tables) addGroup(l *list, hash uint64) bool {
	d, ok := divide(l.weights, leastSlots, groupSlots)
	if !ok {
		return false
	}
	l.division = d
	g := t.groupOf(l)
	id, free := numbered(hash, 0, func(id uint32) bool { return t.groups.taken(ofp.GroupID(id), g) })
	if free {
		l.group = ofp.GroupID(id)
		t.groups.set(l.group, g)
	}
	return free
}

// release gives a list back.
func (t *Tables) release(key listKey) {
	l := t.lists[key]
	if l == nil {
		return
	}
	if l.refs--; l.refs > 0 {
		return
	}
	if l.group != 0 && len(t.idle) < mostIdle {
		t.idle[key] = 0
		return
	}
	t.drop(key, l)
}

// mostIdle bounds the groups that are kept although nobody uses them.
const mostIdle = 1024

// Age takes out groups that nobody has used since the last time but one. A group that goes with its last flow is
// missed: packets that the switch has looked up as far as the group, and those behind them in its caches, are lost
// until it has looked again, for up to half a second with Open vSwitch.
func (t *Tables) Age() {
	for key, age := range t.idle {
		switch l := t.lists[key]; {
		case l.refs > 0:
			delete(t.idle, key)
		case age == 0:
			t.idle[key] = 1
		default:
			delete(t.idle, key)
			t.drop(key, l)
		}
	}
}

func (t *Tables) drop(key listKey, l *list) {
	delete(t.lists, key)
	delete(t.listIDs, l.mark)
	t.eachChoice(l, key.suffix, func(k flowKey, _ entry) { t.flows.unset(k) })
	t.dropReturned(l, key.suffix)
	if l.group != 0 {
		t.groups.unset(l.group)
	}
}

// to is the end of an entry whose packets go to one of the list.
func (l *list) to(t *Tables) []ofp.Instruction {
	return []ofp.Instruction{mark(l.mark), t.goTo(tableChoose)}
}

// groupOf is the select group whose slots fall to the targets as the division says.
func (t *Tables) groupOf(l *list) group {
	g := group{kind: ofp.GroupSelect, selection: ofp.SelectDPHash}
	add := func(target int, weight uint32) {
		g.buckets = append(g.buckets, ofp.Bucket{ID: ofp.BucketID(len(g.buckets)), Weight: uint16(weight),
			Actions: []ofp.Action{upperHalf(l.targets[target].Locator), ofp.Resubmit{Table: t.table(tableRoutes)}}})
	}
	least := l.of
	for _, n := range l.slots {
		least = min(least, n)
	}
	for i, n := range l.slots {
		if i == 0 && least > 1 && l.of > leastSlots { // so that the switch makes as many slots
			add(i, 1)
			n--
		}
		add(i, n)
	}
	return g
}

// eachChoice are the entries of a list in the table choose.
func (t *Tables) eachChoice(l *list, suffix sid.Suffix, put func(flowKey, entry)) {
	if l.group != 0 {
		put(t.flow(t.table(tableChoose), chooseFirst, PuntNothing, ofp.Match{ipv6, marked(l.mark)}, ofp.Apply(ofp.Group{ID: l.group})...))
		return
	}
	t.eachPiece(tableChoose, l.mark, l.division, 0, l.targets, suffix, put)
}

// Priorities of the table choose.
const (
	chooseReturned = 2
	chooseFirst    = 1
)

// eachPiece are the entries of a division in a table, by the bits of the source from shift on.
func (t *Tables) eachPiece(table uint8, id uint32, d division, shift int, targets []resolve.Target, suffix sid.Suffix, put func(flowKey, entry)) {
	for _, p := range d.pieces() {
		value, mask := d.bits(p)
		m := ofp.Match{ipv6, marked(id), lowBits(ofp.IPv6Src, value<<shift, mask<<shift)}
		rewrite := upperHalf(targets[p.target].Locator)
		if !t.masks() {
			rewrite = whole(targets[p.target].Locator, suffix)
		}
		put(t.flow(t.table(table), chooseFirst, PuntNothing, m, ofp.ApplyActions{Actions: []ofp.Action{rewrite}}, t.goTo(tableRoutes)))
	}
}

// whole writes all of the destination.
func whole(l sid.Locator, suffix sid.Suffix) ofp.Action {
	return ofp.SetField{OXM: ofp.Addr(ofp.IPv6Dst, l.Addr(uint64(suffix)))}
}

// lowBits asks for bits of the lower half of an address.
func lowBits(f ofp.Field, value, mask uint64) ofp.OXM {
	var v, m [16]byte
	binary.BigEndian.PutUint64(v[8:], value)
	binary.BigEndian.PutUint64(m[8:], mask)
	return ofp.Bytes(f, v[:], m[:])
}
