package ofp

// Async says which messages the switch sends unasked: for each kind the reasons, bit n for reason n.
type Async struct {
	PacketIn, PortStatus, FlowRemoved AsyncMask
	RoleStatus, TableStatus, Requests AsyncMask // 1.5
}

// An AsyncMask has the reasons for a controller that is primary or equal, and for a secondary.
type AsyncMask struct{ Primary, Secondary uint32 }

// GetAsyncReply answers a GetAsyncRequest.
type GetAsyncReply struct{ Async }

// SetAsync sets what GetAsyncReply tells, all of it.
type SetAsync struct{ Async }

// Type implements Body.
func (GetAsyncReply) Type(Version) Type { return TypeGetAsyncReply }

// Type implements Body.
func (SetAsync) Type(Version) Type { return TypeSetAsync }

func (m *Async) layout(c *codec) {
	switch later := []AsyncMask{m.RoleStatus, m.TableStatus, m.Requests}; {
	case c.v < V15:
		c.only(V15, later[0] != AsyncMask{} || later[1] != AsyncMask{} || later[2] != AsyncMask{}, "reasons of later messages")
		for _, mask := range m.all()[:3] {
			u32(c, &mask.Primary)
			u32(c, &mask.Secondary)
		}
	case c.writing:
		for i, mask := range m.all() {
			c.properties(uint16(2*i), func() { u32(c, &mask.Secondary) })
			c.properties(uint16(2*i+1), func() { u32(c, &mask.Primary) })
		}
	default:
		for c.left() > 0 {
			kind := c.peek16(0)
			c.aligned(2, func() { m.readProperty(c, kind) })
		}
	}
}

// all are the masks in the order of their numbers in 1.5; the first three are that of 1.3 too.
func (m *Async) all() []*AsyncMask {
	return []*AsyncMask{&m.PacketIn, &m.PortStatus, &m.FlowRemoved, &m.RoleStatus, &m.TableStatus, &m.Requests}
}

func (m *Async) readProperty(c *codec, kind uint16) {
	c.take(4)
	if all := m.all(); int(kind/2) < len(all) {
		mask := &all[kind/2].Secondary
		if kind%2 == 1 {
			mask = &all[kind/2].Primary
		}
		u32(c, mask)
	}
	c.take(c.left())
}
