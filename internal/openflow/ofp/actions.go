package ofp

// Output sends the packet out of a port. MaxLen is how many bytes of it PortController sends, of which
// WholePacket are all.
type Output struct {
	Port   Port
	MaxLen uint16
}

// Group lets a group decide.
type Group struct{ ID GroupID }

// SetQueue is the queue of the port by which the packet leaves.
type SetQueue struct{ Queue uint32 }

// PushVLAN puts a tag in front; the EtherType says of which kind.
type PushVLAN struct{ EtherType uint16 }

// PushMPLS puts an MPLS header in front.
type PushMPLS struct{ EtherType uint16 }

// PopVLAN takes the outermost tag off.
type PopVLAN struct{}

// PopMPLS takes the outermost MPLS header off; EtherType is what was under it.
type PopMPLS struct{ EtherType uint16 }

// SetTTL sets the time to live, or hop limit.
type SetTTL struct{ TTL uint8 }

// DecTTL takes one from the time to live, or hop limit; at zero the packet goes to the controller.
type DecTTL struct{}

// SetField writes a field. A mask needs 1.5, where the field's other bits stay.
type SetField struct{ OXM }

// CopyField copies Bits bits of one field to another; the offsets count from the lowest bit. In 1.3 it
// is Nicira's reg_move.
type CopyField struct {
	Bits, SrcOffset, DstOffset uint16
	Src, Dst                   Field
}

// MeterAction lets a meter decide whether the packet goes on. It is 1.5's; 1.3 has the instruction.
type MeterAction struct{ ID MeterID }

// Resubmit is Nicira's: it looks the packet up in another table, does what is found, and goes on.
type Resubmit struct{ Table uint8 }

// CheckLarger is Nicira's: it writes into a bit of a field whether the packet is larger than Length bytes, from the
// Ethernet header on. What a host left whole for its device to cut counts as a whole.
type CheckLarger struct {
	Length uint16
	Bit    uint16
	Dst    Field
}

func (Output) what(Version) actionID      { return standard(0) }
func (PushVLAN) what(Version) actionID    { return standard(17) }
func (PopVLAN) what(Version) actionID     { return standard(18) }
func (PushMPLS) what(Version) actionID    { return standard(19) }
func (PopMPLS) what(Version) actionID     { return standard(20) }
func (SetQueue) what(Version) actionID    { return standard(21) }
func (Group) what(Version) actionID       { return standard(22) }
func (SetTTL) what(Version) actionID      { return standard(23) }
func (DecTTL) what(Version) actionID      { return standard(24) }
func (SetField) what(Version) actionID    { return standard(25) }
func (MeterAction) what(Version) actionID { return standard(29) }
func (Resubmit) what(Version) actionID    { return nicira(14) }
func (CheckLarger) what(Version) actionID { return nicira(49) }

func (CopyField) what(v Version) actionID {
	if v < V15 {
		return nicira(6)
	}
	return standard(28)
}

func (a *Output) layout(c *codec) {
	u32(c, &a.Port)
	u16(c, &a.MaxLen)
	c.pad(6)
}

func (a *Group) layout(c *codec)       { u32(c, &a.ID) }
func (a *SetQueue) layout(c *codec)    { u32(c, &a.Queue) }
func (a *PushVLAN) layout(c *codec)    { u16(c, &a.EtherType); c.pad(2) }
func (a *PushMPLS) layout(c *codec)    { u16(c, &a.EtherType); c.pad(2) }
func (a *PopMPLS) layout(c *codec)     { u16(c, &a.EtherType); c.pad(2) }
func (*PopVLAN) layout(c *codec)       { c.pad(4) }
func (a *SetTTL) layout(c *codec)      { u8(c, &a.TTL); c.pad(3) }
func (*DecTTL) layout(c *codec)        { c.pad(4) }
func (a *MeterAction) layout(c *codec) { u32(c, &a.ID) }

func (a *SetField) layout(c *codec) {
	a.OXM.layout(c)
	c.only(V15, a.masked, "a set-field of some of a field's bits")
}

func (a *CopyField) layout(c *codec) {
	u16(c, &a.Bits)
	u16(c, &a.SrcOffset)
	u16(c, &a.DstOffset)
	if c.v >= V15 {
		c.pad(2)
	}
	layoutID(c, &a.Src, false)
	layoutID(c, &a.Dst, false)
}

// inPort is how Nicira's actions, which have 16 bits for a port, say the one that the packet came from.
const inPort = 0xfff8

func (a *Resubmit) layout(c *codec) {
	port := uint16(inPort)
	u16(c, &port)
	if port != inPort {
		c.fail(ErrValue, "resubmit as from port %d, want %#x", port, inPort)
	}
	u8(c, &a.Table)
	c.pad(3)
}

func (a *CheckLarger) layout(c *codec) {
	u16(c, &a.Length)
	u16(c, &a.Bit)
	layoutID(c, &a.Dst, false)
	c.pad(6)
}
