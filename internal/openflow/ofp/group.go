package ofp

// A GroupID is a group's number.
type GroupID uint32

// The last number of a group, and all of them.
const (
	GroupMax  GroupID = 0xffffff00
	AllGroups GroupID = 0xfffffffc
)

// A GroupType is what a group does with its buckets.
type GroupType uint8

// What groups do with their buckets.
const (
	GroupAll      GroupType = 0 // all of them
	GroupSelect   GroupType = 1 // one of them, by weight
	GroupIndirect GroupType = 2 // the only one
	GroupFailover GroupType = 3 // the first that works
)

// GroupMod adds, changes or removes a group, or buckets of one.
type GroupMod struct {
	Command GroupCommand
	Kind    GroupType
	ID      GroupID
	Buckets []Bucket
	// At is 1.5's: with InsertBucket the bucket behind which, with RemoveBucket the one that goes.
	At        Opt[BucketID]
	Selection *Selection // 1.5: how GroupSelect selects
}

// A GroupCommand is what a GroupMod does.
type GroupCommand uint16

// What a GroupMod does; the last two are 1.5's.
const (
	GroupAdd          GroupCommand = 0
	GroupModify       GroupCommand = 1
	GroupDelete       GroupCommand = 2
	GroupInsertBucket GroupCommand = 3
	GroupRemoveBucket GroupCommand = 5
)

// Type implements Body.
func (GroupMod) Type(Version) Type { return TypeGroupMod }

func (m *GroupMod) layout(c *codec) {
	u16(c, &m.Command)
	c.only(V15, m.Command == GroupInsertBucket || m.Command == GroupRemoveBucket, "a change of some of a group's buckets")
	u8(c, &m.Kind)
	c.pad(1)
	u32(c, &m.ID)
	var n uint16
	var mark int
	if c.v >= V15 {
		mark = c.spanLen(&n)
		c.pad(2)
		opt32(c, &m.At, uint32(BucketAll))
	} else {
		c.only(V15, m.At.Set, "a bucket's number")
	}
	layoutBuckets(c, m.Kind, mark, n, &m.Buckets)
	layoutSelection(c, &m.Selection)
}

// layoutBuckets is a group's buckets: in 1.5 their length stands before them.
func layoutBuckets(c *codec, kind GroupType, mark int, n uint16, bs *[]Bucket) {
	each := func() { list(c, bs, func(b *Bucket) { b.layout(c, kind) }) }
	if c.v >= V15 {
		c.span(mark, n, each)
	} else {
		each()
	}
}
