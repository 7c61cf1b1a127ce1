package agent

import (
	"context"
	"net"
	"net/netip"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Ends is how an agent gets connections that pass its machine, and makes those to servers.
type Ends interface {
	// Next waits for the first packet of a connection of one of the lanes. The packet is held until it is decided about.
	Next(context.Context) (SYN, error)
	// Dial connects to a server in the name of a client: from its address and port. A *trunk.Refused says that the
	// server refused.
	Dial(ctx context.Context, client, server netip.AddrPort) (c *net.TCPConn, host, own frame.Options, err error)
	// TakeOver goes on with a connection to an end host whose agent is lost, and says what that has received. A
	// *trunk.Refused says why not; CannotGoOn that the end host was reset.
	TakeOver(context.Context, frame.Takeover) (c *net.TCPConn, received uint64, err error)
	// Finished is called before a FIN goes to an end host.
	Finished(*net.TCPConn)
	// SetLanes says which connections are to be held: those of the lanes at whose near end the agent is.
	SetLanes([]*Lane) error
}

// Legs are connections whose packets switches rewrite: at this agent's ends they have its own address and a port of their own.
type Legs interface {
	// Next waits for the first packet of one, which waits at its switch.
	Next(context.Context) (SYN, error)
	// Dial connects to a server for a client, whose address the switches write. A *trunk.Refused says that the server refused.
	Dial(ctx context.Context, lane uint64, client, server netip.AddrPort) (c *net.TCPConn, host, own frame.Options, err error)
	// Over is called when a connection of a session between the two has ended that had this end here, whether it was one of these
	// or not.
	Over(client, server string, end netip.AddrPort)
}

// A SYN is the first packet of a connection, which waits for a decision. Each of its methods but those that look at it is
// the decision.
type SYN interface {
	Lane() uint64
	Client() netip.AddrPort
	Server() netip.AddrPort
	Options() frame.Options // the client's

	// Accept finishes the client's handshake in the server's name.
	Accept(context.Context) (c *net.TCPConn, own frame.Options, err error)
	// Refuse answers as a server does that refuses, Drop as one that is silent, and Pass lets the packet go on to the
	// server, unboosted.
	Refuse() error
	Drop() error
	Pass() error
}
