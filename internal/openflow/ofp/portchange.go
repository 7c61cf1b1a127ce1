package ofp

// PortStatus says that a port came, went or changed.
type PortStatus struct {
	Reason PortReason
	Port   PortDesc
}

// A PortReason is what became of a port.
type PortReason uint8

// What becomes of ports.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// Type implements Body.
func (PortStatus) Type(Version) Type { return TypePortStatus }

func (m *PortStatus) layout(c *codec) {
	u8(c, &m.Reason)
	c.pad(7)
	m.Port.layout(c)
}

// PortMod sets those settings of a port that Mask has. HW must be the port's.
type PortMod struct {
	Port         Port
	HW           MAC
	Config, Mask PortConfig
	Advertise    uint32 // 0: as it is
}

// Type implements Body.
func (PortMod) Type(Version) Type { return TypePortMod }

func (m *PortMod) layout(c *codec) {
	u32(c, &m.Port)
	c.pad(4)
	layoutMAC(c, &m.HW)
	c.pad(2)
	u32(c, &m.Config)
	u32(c, &m.Mask)
	if c.v < V15 {
		u32(c, &m.Advertise)
		c.pad(4)
		return
	}
	if !c.writing || m.Advertise != 0 {
		c.properties(propEthernet, func() { u32(c, &m.Advertise) })
	}
}
