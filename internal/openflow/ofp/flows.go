package ofp

// A Flow is a row of a switch's table.
type Flow struct {
	Table        uint8
	Priority     uint16
	IdleTimeout  uint16 // seconds, 0: none
	HardTimeout  uint16
	Flags        FlowFlags
	Importance   uint16 // 1.5
	Cookie       uint64
	Stats        FlowCounts
	Idle         Duration // 1.5: since its last packet
	Match        Match
	Instructions []Instruction
}

func (f *Flow) layout(c *codec) {
	c.record(0, func() {
		c.length()
		if c.v >= V15 {
			f.layout15(c)
		} else {
			f.layout13(c)
		}
		layoutInstructions(c, &f.Instructions)
	})
}

func (f *Flow) layout13(c *codec) {
	u8(c, &f.Table)
	c.pad(1)
	f.Stats.Duration.layout(c)
	f.layoutTimes(c)
	layoutImportance(c, &f.Importance)
	c.pad(2)
	u64(c, &f.Cookie)
	u64(c, &f.Stats.Packets)
	u64(c, &f.Stats.Bytes)
	f.Match.layout(c)
	c.only(V15, f.Idle != Duration{}, "how long a flow has been idle")
}

func (f *Flow) layout15(c *codec) {
	c.pad(2)
	u8(c, &f.Table)
	c.pad(1)
	f.layoutTimes(c)
	layoutImportance(c, &f.Importance)
	u64(c, &f.Cookie)
	f.Match.layout(c)
	f.Stats.layoutOXS(c, stat{oxsIdle, 8, func() { f.Idle.layout(c) }})
}

func (f *Flow) layoutTimes(c *codec) {
	u16(c, &f.Priority)
	u16(c, &f.IdleTimeout)
	u16(c, &f.HardTimeout)
	u16(c, &f.Flags)
}

// Aggregate sums up flows.
type Aggregate struct {
	Packets, Bytes uint64
	Flows          uint32
}

// Kind implements Part.
func (Aggregate) Kind() MultipartKind { return KindAggregate }
