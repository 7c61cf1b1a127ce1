package ofp

// The experimenters whose extensions we know.
const (
	onf       = 0x4f4e4600 // Open Networking Foundation
	nx        = 0x00002320 // Nicira
	netronome = 0x0000154d
)

// Those of the Open Networking Foundation that bring to 1.3 what 1.5 has.
const (
	onfRoleStatus    = 1911
	onfBundleControl = 2300
	onfBundleAdd     = 2301
	onfBundleError   = 2300
)

// An Experimenter is a message that this package leaves alone.
type Experimenter struct {
	ID, Kind uint32
	Data     []byte
}

// Type implements Body.
func (Experimenter) Type(Version) Type { return TypeExperimenter }

// extensions are the messages that 1.3 has through the Open Networking Foundation.
func extension(kind uint32) func(*codec, Body) Body {
	switch kind {
	case onfRoleStatus:
		return both[RoleStatus, *RoleStatus, Body]()
	case onfBundleControl:
		return both[BundleControl, *BundleControl, Body]()
	case onfBundleAdd:
		return both[BundleAdd, *BundleAdd, Body]()
	}
	return nil
}

func layoutExperimenter(c *codec, b Body) Body {
	m := Experimenter{ID: onf}
	switch body := b.(type) {
	case Experimenter:
		m = body
	case RoleStatus:
		m.Kind = onfRoleStatus
	case BundleControl:
		m.Kind = onfBundleControl
	case BundleAdd:
		m.Kind = onfBundleAdd
	}
	u32(c, &m.ID)
	u32(c, &m.Kind)
	_, asIs := b.(Experimenter)
	if layout := extension(m.Kind); m.ID == onf && c.v < V15 && layout != nil && !asIs {
		return layout(c, b)
	}
	c.raw(&m.Data)
	return m
}
