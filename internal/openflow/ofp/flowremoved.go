package ofp

// FlowRemoved says that a flow has ended, to those who asked for it by FlagSendRemoved.
type FlowRemoved struct {
	Cookie      uint64
	Table       uint8
	Priority    uint16
	Reason      RemovedReason
	IdleTimeout uint16
	HardTimeout uint16
	Match       Match
	Stats       FlowCounts
}

// A RemovedReason is why a flow has ended.
type RemovedReason uint8

// Why flows end.
const (
	RemovedIdle     RemovedReason = 0
	RemovedHard     RemovedReason = 1
	RemovedDeleted  RemovedReason = 2
	RemovedGroup    RemovedReason = 3
	RemovedMeter    RemovedReason = 4
	RemovedEviction RemovedReason = 5
)

// Type implements Body.
func (FlowRemoved) Type(Version) Type { return TypeFlowRemoved }

func (m *FlowRemoved) layout(c *codec) {
	if c.v >= V15 {
		m.layout15(c)
		return
	}
	u64(c, &m.Cookie)
	u16(c, &m.Priority)
	u8(c, &m.Reason)
	u8(c, &m.Table)
	m.Stats.Duration.layout(c)
	u16(c, &m.IdleTimeout)
	u16(c, &m.HardTimeout)
	u64(c, &m.Stats.Packets)
	u64(c, &m.Stats.Bytes)
	m.Match.layout(c)
}

func (m *FlowRemoved) layout15(c *codec) {
	u8(c, &m.Table)
	u8(c, &m.Reason)
	u16(c, &m.Priority)
	u16(c, &m.IdleTimeout)
	u16(c, &m.HardTimeout)
	u64(c, &m.Cookie)
	m.Match.layout(c)
	m.Stats.layoutOXS(c)
}
