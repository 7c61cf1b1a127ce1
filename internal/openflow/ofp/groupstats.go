package ofp

// GroupDesc is what a group is.
type GroupDesc struct {
	Kind      GroupType
	ID        GroupID
	Buckets   []Bucket
	Selection *Selection // 1.5
}

func (g *GroupDesc) layout(c *codec) {
	c.record(0, func() {
		var n uint16
		var mark int
		c.length()
		u8(c, &g.Kind)
		c.pad(1)
		u32(c, &g.ID)
		if c.v >= V15 {
			mark = c.spanLen(&n)
			c.pad(6)
		}
		layoutBuckets(c, g.Kind, mark, n, &g.Buckets)
		layoutSelection(c, &g.Selection)
	})
}

// GroupStats are what a group has counted.
type GroupStats struct {
	ID             GroupID
	References     uint32 // flows and groups that send there
	Packets, Bytes uint64
	Duration       Duration
	Buckets        []Counts
}

// Counts are packets and bytes.
type Counts struct{ Packets, Bytes uint64 }

func (g *GroupStats) layout(c *codec) {
	c.record(0, func() {
		c.length()
		c.pad(2)
		u32(c, &g.ID)
		u32(c, &g.References)
		c.pad(4)
		u64(c, &g.Packets)
		u64(c, &g.Bytes)
		g.Duration.layout(c)
		list(c, &g.Buckets, func(n *Counts) { n.layout(c) })
	})
}

func (n *Counts) layout(c *codec) {
	u64(c, &n.Packets)
	u64(c, &n.Bytes)
}

// GroupFeatures are what groups a switch has; arrays are by GroupType.
type GroupFeatures struct {
	Types        uint32 // bit n: GroupType n
	Capabilities uint32
	Max          [4]uint32
	Actions      [4]uint32 // bit n: action type n
}

// What groups can do, bits of GroupFeatures.Capabilities.
const (
	GroupsWeighted  = 1 << 0
	GroupsWatch     = 1 << 1
	GroupsChain     = 1 << 2
	GroupsSeeCycles = 1 << 3
)

func (g *GroupFeatures) layout(c *codec) {
	u32(c, &g.Types)
	u32(c, &g.Capabilities)
	for i := range g.Max {
		u32(c, &g.Max[i])
	}
	for i := range g.Actions {
		u32(c, &g.Actions[i])
	}
}
