package ofp

// A MeterID is a meter's number.
type MeterID uint32

// The last number of a meter, and those that are not a flow's.
const (
	MeterMax        MeterID = 0xffff0000
	MeterSlowPath   MeterID = 0xfffffffd
	MeterController MeterID = 0xfffffffe // of all packets to the controller
	AllMeters       MeterID = 0xffffffff
)

// MeterMod adds, changes or removes a meter.
type MeterMod struct {
	Command MeterCommand
	Meter
}

// A Meter limits a rate.
type Meter struct {
	Flags MeterFlags
	ID    MeterID
	Bands []Band
}

// A MeterCommand is what a MeterMod does.
type MeterCommand uint16

// What a MeterMod does.
const (
	MeterAdd    MeterCommand = 0
	MeterModify MeterCommand = 1
	MeterDelete MeterCommand = 2
)

// MeterFlags are the unit of a meter's rates and other options.
type MeterFlags uint16

// The options of a meter.
const (
	MeterKbps  MeterFlags = 1 << 0
	MeterPktps MeterFlags = 1 << 1
	MeterBurst MeterFlags = 1 << 2 // Band.Burst counts
	MeterStats MeterFlags = 1 << 3
)

// A Band is what happens above a rate.
type Band struct {
	Kind        BandKind
	Rate, Burst uint32
	Precedence  uint8  // BandRemark: how much the drop precedence grows
	ID          uint32 // BandExperimenter: whose
	Data        []byte // BandExperimenter: the rest
}

// A BandKind is what a band does.
type BandKind uint16

// What bands do.
const (
	BandDrop         BandKind = 1
	BandRemark       BandKind = 2
	BandExperimenter BandKind = 0xffff
)

// Type implements Body.
func (MeterMod) Type(Version) Type { return TypeMeterMod }

func (m *MeterMod) layout(c *codec) {
	u16(c, &m.Command)
	u16(c, &m.Flags)
	u32(c, &m.ID)
	list(c, &m.Bands, func(b *Band) { b.layout(c) })
}

// layout is that of a reply; a MeterMod has its command where this has its length.
func (m *Meter) layout(c *codec) {
	c.record(0, func() {
		c.length()
		u16(c, &m.Flags)
		u32(c, &m.ID)
		list(c, &m.Bands, func(b *Band) { b.layout(c) })
	})
}

func (b *Band) layout(c *codec) {
	c.rounded(2, func() {
		u16(c, &b.Kind)
		c.length()
		u32(c, &b.Rate)
		u32(c, &b.Burst)
		switch b.Kind {
		case BandRemark:
			u8(c, &b.Precedence)
			c.pad(3)
		case BandExperimenter:
			u32(c, &b.ID)
			c.raw(&b.Data)
		default:
			c.pad(4)
		}
	})
}
