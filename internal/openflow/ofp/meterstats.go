package ofp

// MeterCounts are what a meter has counted.
type MeterCounts struct {
	ID             MeterID
	References     uint32 // flows that use it
	Packets, Bytes uint64 // that came in
	Duration       Duration
	Bands          []Counts // that each band dealt with
}

func (m *MeterCounts) layout(c *codec) {
	c.record(4, func() {
		u32(c, &m.ID)
		c.length()
		c.pad(6)
		u32(c, &m.References)
		u64(c, &m.Packets)
		u64(c, &m.Bytes)
		m.Duration.layout(c)
		list(c, &m.Bands, func(n *Counts) { n.layout(c) })
	})
}

// MeterFeatures are what meters a switch has.
type MeterFeatures struct {
	Max          uint32
	Bands        uint32 // bit n: BandKind n
	Capabilities uint32 // as MeterFlags
	MaxBands     uint8
	MaxColour    uint8
	Features     uint32 // 1.5
}

func (m *MeterFeatures) layout(c *codec) {
	u32(c, &m.Max)
	u32(c, &m.Bands)
	u32(c, &m.Capabilities)
	u8(c, &m.MaxBands)
	u8(c, &m.MaxColour)
	c.pad(2)
	if c.left() > 0 || m.Features != 0 { // Open vSwitch leaves it out
		c.only(V15, m.Features != 0, "features of meters")
		u32(c, &m.Features)
		c.pad(4)
	}
}
