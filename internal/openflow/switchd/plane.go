package switchd

import (
	"context"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// A plane is what modules reach switches by. Its methods may be called from any goroutine and, but for ask, do
// not wait for a switch; of one that is away they keep what is to be there when it comes back.
type plane interface {
	// switches are those that are connected, by name.
	switches() []controller.Switch
	// setFlows replaces an owner's flows at a switch, subscriptions too; calls is how often the owner has said what it wants.
	setFlows(of owner, at string, flows []ownFlow, calls uint64) error
	// changeFlows puts some of an owner's flows in, or in the place of those with the same key, takes some out by their keys, and
	// leaves the others alone. None of them punts.
	changeFlows(of owner, at string, set, unset []ownFlow, calls uint64) error
	// send drops the packet where the switch takes too little.
	send(at string, out controller.Out) error
	// setLinks replaces what an owner says of a switch's links.
	setLinks(of owner, at string, links []controller.Link) error
	// ask lends the connection of a switch that is there, and returns what f does; f may wait, as long as ctx.
	ask(ctx context.Context, at string, f func(*ofconn.Conn) error) error
	// conditions are those of all switches that came since the start, by name.
	conditions() []condition
	// shares are how a switch splits the flows of what it resolves, by service, protocol and port.
	shares(at string) []share
}

// An ownFlow is a rule of a module, or one that punts packets to it.
type ownFlow struct {
	controller.Flow        // of one that punts the priority may be above MaxPriority, up to 0x3fff
	ID              uint32 // in the cookie's lower half: of the subscription, for what is punted; of what may expire its generation
	Punt            bool   // to us: the instructions are then made from Copy
	Copy            bool
	Rate            uint32 // packets a second that may be punted
	Lease           time.Duration
}

// A condition is how a switch is and what was counted of it; of one that is away how it was.
type condition struct {
	controller.Switch
	Address    string    // that it connected from
	Since      time.Time // that it is Up, or is not
	Connects   uint64
	PacketIns  map[owner]uint64
	Dropped    uint64 // packets that it punted and nobody took
	Errors     uint64 // refusals of what it was told
	Bundles    uint64
	Flows      int // of ours that it is to hold
	Groups     int
	Meters     int
	Reconciled time.Duration // that bringing it up to date took when it came last
	Trouble    string        // what is wrong with it
}

// A share is how a switch splits the new flows of one triple.
type share struct {
	Of      sid.Triple
	Group   ofp.GroupID // 0: none is needed
	Targets []shareTarget
}

// A shareTarget is one instance's part.
type shareTarget struct {
	Locator sid.Locator
	Weight  uint32  // as asked for
	Share   float64 // of new flows, 0 to 1, as the switch does it
}

// An audience hears what happens at switches. Its methods do not wait; they are called from the switches'
// goroutines.
type audience interface {
	// changed tells of a switch that came, went or changed.
	changed(controller.Switch)
	// held tells an owner that a switch has what it wanted when it had said so that often.
	held(of owner, at string, calls uint64)
	// expired tells an owner that a switch has taken out one of its flows by itself, by the flow's ID. It is called before the
	// switch's tables are changed by it.
	expired(of owner, at string, id uint32)
	// punted gives an owner a packet that one of its flows punted.
	punted(of owner, id uint32, p controller.Packet)
}

// A chronicle takes what happened into the network's events (docs/operate.md lists the kinds). It does not wait.
type chronicle interface {
	event(kind, subject, text string, attrs ...string)
}
