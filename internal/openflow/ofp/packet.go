package ofp

// PacketIn is a packet that a flow sent to the controller.
type PacketIn struct {
	Buffer   Opt[uint32] // where the switch keeps it
	TotalLen uint16      // of which Data may be the beginning
	Reason   PacketReason
	Table    uint8
	Cookie   uint64 // of the flow
	Match    Match  // InPort, Metadata, TunnelID, registers
	Data     []byte
}

// A PacketReason is why a packet was sent to the controller.
type PacketReason uint8

// Why packets are sent to the controller; the last three are 1.5's.
const (
	ReasonNoMatch    PacketReason = 0 // 1.5: the flow that matches where no other does
	ReasonAction     PacketReason = 1
	ReasonInvalidTTL PacketReason = 2
	ReasonActionSet  PacketReason = 3
	ReasonGroup      PacketReason = 4
	ReasonPacketOut  PacketReason = 5
)

// Type implements Body.
func (PacketIn) Type(Version) Type { return TypePacketIn }

func (m *PacketIn) layout(c *codec) {
	opt32(c, &m.Buffer, absent)
	u16(c, &m.TotalLen)
	u8(c, &m.Reason)
	u8(c, &m.Table)
	u64(c, &m.Cookie)
	m.Match.layout(c)
	c.pad(2) // lets the packet's network header lie on a multiple of 4
	c.raw(&m.Data)
}

// InPort is the port that the packet came in by.
func (m PacketIn) InPort() Port { return Port(m.Match.Uint(InPort)) }

// PacketOut has the switch send a packet: Data, or one that it keeps.
type PacketOut struct {
	Buffer  Opt[uint32]
	InPort  Port  // as if it had come from there; PortController if from nowhere
	Extra   Match // 1.5: what it is to have besides an InPort: Metadata, TunnelID
	Actions []Action
	Data    []byte
}

// Type implements Body.
func (PacketOut) Type(Version) Type { return TypePacketOut }

func (m *PacketOut) layout(c *codec) {
	var n uint16
	opt32(c, &m.Buffer, absent)
	if c.v < V15 {
		c.only(V15, len(m.Extra) > 0, "a packet-out with more than a port")
		u32(c, &m.InPort)
		mark := c.spanLen(&n)
		c.pad(6)
		c.span(mark, n, func() { layoutActions(c, &m.Actions) })
	} else {
		mark := c.spanLen(&n)
		c.pad(2)
		m.layoutMatch(c)
		c.span(mark, n, func() { layoutActions(c, &m.Actions) })
	}
	c.raw(&m.Data)
}

func (m *PacketOut) layoutMatch(c *codec) {
	match := append(Match{Uint(InPort, uint64(m.InPort))}, m.Extra...)
	if !c.writing {
		match = nil
	}
	match.layout(c)
	if c.writing {
		return
	}
	m.InPort = Port(match.Uint(InPort))
	for _, o := range match {
		if o.Field != InPort {
			m.Extra = append(m.Extra, o)
		}
	}
}
