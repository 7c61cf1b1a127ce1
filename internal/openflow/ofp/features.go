package ofp

// FeaturesReply says what a switch is.
type FeaturesReply struct {
	DatapathID   uint64
	Buffers      uint32
	Tables       uint8
	Auxiliary    uint8 // 0: the main connection
	Capabilities uint32
}

// What a switch can do, bits of FeaturesReply.Capabilities.
const (
	CapFlowStats  = 1 << 0
	CapTableStats = 1 << 1
	CapPortStats  = 1 << 2
	CapGroupStats = 1 << 3
	CapQueueStats = 1 << 6
	CapBundles    = 1 << 9 // 1.5
)

// Type implements Body.
func (FeaturesReply) Type(Version) Type { return TypeFeaturesReply }

func (m *FeaturesReply) layout(c *codec) {
	u64(c, &m.DatapathID)
	u32(c, &m.Buffers)
	u8(c, &m.Tables)
	u8(c, &m.Auxiliary)
	c.pad(2)
	u32(c, &m.Capabilities)
	c.pad(4)
}

// GetConfigReply says how the switch treats fragments, and how many bytes of a packet it sends to the
// controller where no action says so.
type GetConfigReply struct{ Config }

// SetConfig sets what GetConfigReply tells.
type SetConfig struct{ Config }

// Config is what both say.
type Config struct {
	Flags   uint16 // 0: fragments like other packets; 1: dropped; 2: reassembled
	MissLen uint16
}

// WholePacket is the length that asks for all of a packet, in Config.MissLen and Output.MaxLen.
const WholePacket = 0xffff

// Type implements Body.
func (GetConfigReply) Type(Version) Type { return TypeGetConfigReply }

// Type implements Body.
func (SetConfig) Type(Version) Type { return TypeSetConfig }

func (m *Config) layout(c *codec) {
	u16(c, &m.Flags)
	u16(c, &m.MissLen)
}
