package ofp

// BundleControl opens, closes, commits or discards a bundle: messages that take effect together. In
// 1.3 it is an extension, as BundleAdd is.
type BundleControl struct {
	ID    uint32
	Kind  BundleKind
	Flags BundleFlags
}

// A BundleKind is what a BundleControl does, or answers.
type BundleKind uint16

// What a BundleControl does; the answer to each is the number behind it.
const (
	BundleOpen      BundleKind = 0
	BundleOpened    BundleKind = 1
	BundleClose     BundleKind = 2
	BundleClosed    BundleKind = 3
	BundleCommit    BundleKind = 4
	BundleCommitted BundleKind = 5
	BundleDiscard   BundleKind = 6
	BundleDiscarded BundleKind = 7
)

// BundleFlags are options of a bundle; all its messages repeat them.
type BundleFlags uint16

// The options of a bundle.
const (
	BundleAtomic  BundleFlags = 1 << 0 // no packet sees a part of it
	BundleOrdered BundleFlags = 1 << 1
)

// BundleAdd puts a message into a bundle. The message has its version and its transaction id.
type BundleAdd struct {
	ID      uint32
	Flags   BundleFlags
	Message Message
}

// Type implements Body.
func (BundleControl) Type(v Version) Type { return bundleType(v, TypeBundleControl) }

// Type implements Body.
func (BundleAdd) Type(v Version) Type { return bundleType(v, TypeBundleAdd) }

func bundleType(v Version, t Type) Type {
	if v < V15 {
		return TypeExperimenter
	}
	return t
}

func (m *BundleControl) layout(c *codec) {
	u32(c, &m.ID)
	u16(c, &m.Kind)
	u16(c, &m.Flags)
	c.take(c.left()) // properties: times and experimenters'
}

func (m *BundleAdd) layout(c *codec) {
	u32(c, &m.ID)
	c.pad(2)
	u16(c, &m.Flags)
	if c.inner {
		c.fail(ErrValue, "a bundle in a bundle")
		return
	}
	c.inner = true
	c.message(&m.Message)
	c.inner = false
	c.take(c.left()) // properties
}
