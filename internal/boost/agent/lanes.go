package agent

import (
	"fmt"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/lane"
)

// A Lane is connections that are boosted alike: those of an entry whose clients' ports end in the same bits.
type Lane struct {
	Number uint64
	// Client and Server are whose connections they are, and Port is the server's; 0: any.
	Client, Server netip.Prefix
	Port           uint16
	// Slot is the value of the lowest Bits bits of the client's port.
	Slot uint16
	Bits uint8
	// Near are the agents that take such connections, Far those that connect to the servers; this one may be among
	// either. A near agent tries the far ones in this order.
	Near, Far []string
	// AtOnce has clients accepted before the server has answered.
	AtOnce bool
	// Named: Server is the address of a service. Near agents serve it as hosts do, far ones connect to it as hosts do.
	Named bool
	// Rewrite: switches write the agents' addresses into its packets.
	Rewrite bool
}

// Takes reports whether a connection is of the lane.
func (l *Lane) Takes(client, server netip.AddrPort) bool {
	as := lane.Lane{Client: l.Client, Server: l.Server, Port: l.Port, Slot: l.Slot, Bits: l.Bits} // as the controller means it
	return as.Takes(client, server)
}

// Check says what is wrong with a lane.
func (l *Lane) Check() error {
	switch {
	case l.Number == 0:
		return fmt.Errorf("a lane has no number")
	case !l.Client.IsValid() || !l.Server.IsValid():
		return fmt.Errorf("lane %d: it lacks a client's or a server's prefix", l.Number)
	case l.Client.Addr().Is4() != l.Server.Addr().Is4():
		return fmt.Errorf("lane %d: client %v and server %v are of two families", l.Number, l.Client, l.Server)
	case l.Bits > 16 || l.Bits < 16 && l.Slot>>l.Bits != 0:
		return fmt.Errorf("lane %d: slot %d does not fit %d bits", l.Number, l.Slot, l.Bits)
	case len(l.Near) == 0 || len(l.Far) == 0:
		return fmt.Errorf("lane %d: it lacks an agent at one of its ends", l.Number)
	}
	return nil
}

// forbidden says why this agent does not connect to a server, 0 if it does: the lane must be one of its own, the asking
// agent one of the lane's near ones, and the connection one of the lane's.
func (a *Agent) forbidden(from string, m frame.Open) frame.Refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lanes[m.Lane]
	switch {
	case l != nil && l.Named && a.serves(l):
		return frame.NotMyLane // else two agents would bring a connection to each other
	case l == nil || !slices.Contains(l.Far, a.Name) || !slices.Contains(l.Near, from) || !l.Takes(m.Client, m.Server):
		return frame.NotMyLane
	case a.draining:
		return frame.Draining
	}
	return 0
}
