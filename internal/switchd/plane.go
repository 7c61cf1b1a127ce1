package switchd

import "scaffold.dev/scaffold/controller"

// A plane is what modules reach switches by. Its methods may be called from any goroutine and do not wait for
// a switch; of one that is away they keep what is to be there when it comes back.
type plane interface {
	// switches are those that are connected, by name.
	switches() []controller.Switch
	// setFlows replaces an owner's flows at a switch, subscriptions too.
	setFlows(of owner, at string, flows []ownFlow) error
	// send drops the packet where the switch takes too little.
	send(at string, out controller.Out) error
	// setLinks replaces what an owner says of a switch's links.
	setLinks(of owner, at string, links []controller.Link) error
	// locator is where a router's own address is, and ask the way to the controller's API.
	report(subject, text string)
}

// An ownFlow is a rule of a module, or one that punts packets to it.
type ownFlow struct {
	controller.Flow
	ID   uint32 // in the cookie's lower half: of the subscription, for what is punted
	Punt bool   // to us: the instructions are then made from Copy
	Copy bool
	Rate uint32 // packets a second that may be punted
}

// An audience hears what happens at switches. Its methods do not wait; they are called from the switches'
// goroutines.
type audience interface {
	// changed tells of a switch that came, went or changed.
	changed(controller.Switch)
	// punted gives an owner a packet that one of its flows punted.
	punted(of owner, id uint32, p controller.Packet)
}
