package ofp

// TableStats are what a table has counted.
type TableStats struct {
	Table            uint8
	Active           uint32 // flows in it
	Lookups, Matched uint64
}

func (t *TableStats) layout(c *codec) {
	u8(c, &t.Table)
	c.pad(3)
	u32(c, &t.Active)
	u64(c, &t.Lookups)
	u64(c, &t.Matched)
}

// TableDesc is how a table of 1.5 is set up.
type TableDesc struct {
	Table  uint8
	Config uint32 // bit 2: evicts; bit 3: warns when nearly full
}

func (t *TableDesc) layout(c *codec) {
	c.record(0, func() {
		c.length()
		u8(c, &t.Table)
		c.pad(1)
		u32(c, &t.Config)
		c.take(c.left()) // properties
	})
}

// Desc is who made a switch.
type Desc struct {
	Manufacturer, Hardware, Software string
	Serial                           string
	Datapath                         string // for people: what the operator calls it
}

// Kind implements Part.
func (Desc) Kind() MultipartKind { return KindDesc }

const (
	descLen   = 256
	serialLen = 32
)

func (d *Desc) layout(c *codec) {
	c.text(descLen, &d.Manufacturer)
	c.text(descLen, &d.Hardware)
	c.text(descLen, &d.Software)
	c.text(serialLen, &d.Serial)
	c.text(descLen, &d.Datapath)
}
