package ofp

// A Bucket is one of a group's lists of actions.
type Bucket struct {
	ID         BucketID // 1.5; unique in the group
	Weight     uint16   // with GroupSelect
	WatchPort  Opt[Port]
	WatchGroup Opt[GroupID]
	Actions    []Action
}

// A BucketID is a bucket's number in its group.
type BucketID uint32

// The last number of a bucket, and those that are none.
const (
	BucketMax   BucketID = 0xffffff00
	BucketFirst BucketID = 0xfffffffd
	BucketLast  BucketID = 0xfffffffe
	BucketAll   BucketID = 0xffffffff
)

func (b *Bucket) layout(c *codec, group GroupType) {
	c.record(0, func() {
		c.length()
		if c.v >= V15 {
			b.layout15(c, group)
			return
		}
		c.only(V15, b.ID != 0, "a bucket's number")
		u16(c, &b.Weight)
		opt32(c, &b.WatchPort, absent)
		opt32(c, &b.WatchGroup, absent)
		c.pad(4)
		layoutActions(c, &b.Actions)
	})
}

func (b *Bucket) layout15(c *codec, group GroupType) {
	var n uint16
	mark := c.spanLen(&n)
	u32(c, &b.ID)
	c.span(mark, n, func() { layoutActions(c, &b.Actions) })
	if c.writing {
		b.writeProperties(c, group)
	} else {
		b.readProperties(c, group)
	}
}

const (
	bucketWeight     = 0
	bucketWatchPort  = 1
	bucketWatchGroup = 2
)

// writeProperties says the weight of every bucket of a select group: one that is not said is 1, not 0.
func (b *Bucket) writeProperties(c *codec, group GroupType) {
	if b.Weight != 0 || group == GroupSelect {
		c.properties(bucketWeight, func() { u16(c, &b.Weight); c.pad(2) })
	}
	if b.WatchPort.Set {
		c.properties(bucketWatchPort, func() { opt32(c, &b.WatchPort, absent) })
	}
	if b.WatchGroup.Set {
		c.properties(bucketWatchGroup, func() { opt32(c, &b.WatchGroup, absent) })
	}
}

func (b *Bucket) readProperties(c *codec, group GroupType) {
	if group == GroupSelect {
		b.Weight = 1
	}
	for c.left() > 0 {
		kind := c.peek16(0)
		c.aligned(2, func() {
			c.take(4)
			switch kind {
			case bucketWeight:
				u16(c, &b.Weight)
			case bucketWatchPort:
				opt32(c, &b.WatchPort, absent)
			case bucketWatchGroup:
				opt32(c, &b.WatchGroup, absent)
			}
			c.take(c.left())
		})
	}
}
