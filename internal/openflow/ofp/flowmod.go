package ofp

// A FlowMod adds, changes or removes flows.
type FlowMod struct {
	Command            FlowCommand
	Cookie, CookieMask uint64 // the mask selects what is changed or removed; adding has none
	Table              uint8
	IdleTimeout        uint16 // seconds, 0: none
	HardTimeout        uint16
	Priority           uint16
	Importance         uint16 // 1.5: who is evicted first
	Buffer             Opt[uint32]
	OutPort            Opt[Port]    // removes only flows that send there
	OutGroup           Opt[GroupID] // removes only flows that send there
	Flags              FlowFlags
	Match              Match
	Instructions       []Instruction
}

// A FlowCommand is what a FlowMod does.
type FlowCommand uint8

// What a FlowMod does; the strict ones mean one flow, by match and priority.
const (
	FlowAdd          FlowCommand = 0
	FlowModify       FlowCommand = 1
	FlowModifyStrict FlowCommand = 2
	FlowDelete       FlowCommand = 3
	FlowDeleteStrict FlowCommand = 4
)

// AllTables is the table of a FlowMod that deletes, or of a question, which means all.
const AllTables = 0xff

// FlowFlags are options of a flow.
type FlowFlags uint16

// The options of a flow.
const (
	FlagSendRemoved  FlowFlags = 1 << 0 // FlowRemoved when it ends
	FlagCheckOverlap FlowFlags = 1 << 1
	FlagResetCounts  FlowFlags = 1 << 2
	FlagNoPackets    FlowFlags = 1 << 3 // need not be counted
	FlagNoBytes      FlowFlags = 1 << 4
)

// Type implements Body.
func (FlowMod) Type(Version) Type { return TypeFlowMod }

func (m *FlowMod) layout(c *codec) {
	u64(c, &m.Cookie)
	u64(c, &m.CookieMask)
	u8(c, &m.Table)
	u8(c, &m.Command)
	u16(c, &m.IdleTimeout)
	u16(c, &m.HardTimeout)
	u16(c, &m.Priority)
	opt32(c, &m.Buffer, absent)
	opt32(c, &m.OutPort, absent)
	opt32(c, &m.OutGroup, absent)
	u16(c, &m.Flags)
	layoutImportance(c, &m.Importance)
	m.Match.layout(c)
	layoutInstructions(c, &m.Instructions)
}

// layoutImportance is two bytes that mean nothing in 1.3.
func layoutImportance(c *codec, importance *uint16) {
	c.only(V15, *importance != 0, "an importance")
	if c.v >= V15 {
		u16(c, importance)
	} else {
		c.pad(2)
	}
}
