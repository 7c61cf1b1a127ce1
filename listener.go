package scaffold

import (
	"context"
	"fmt"
	"net"
)

// A ListenConfig says how a program serves, in the manner of [net.ListenConfig]. Its zero value serves
// as [Listen] does.
type ListenConfig struct {
	// Host is whose daemon is asked; nil means this machine's.
	Host *Host
	// CanResume says that this program goes on with connections that began at another instance: it asks
	// [Identify] about each that it accepts, and finds the rest in a record that the instances share.
	// Only instances that say so are offered the connections of one that is gone. It holds while the
	// listener is open.
	CanResume bool
	// Notify, where set, is told what the host daemon says of this instance. It is called from one
	// goroutine, may take its time, and may close the listener.
	Notify func(Notice)
}

// A Notice is what a serving program is told.
type Notice string

// The notices. Any but Lost may come again after the host daemon was restarted.
const (
	Serving   Notice = "serving"   // this instance is registered, and new flows may come
	Draining  Notice = "draining"  // no new flows come: let those that are here end, or shed them with FailAll
	Undrained Notice = "undrained" // the drain was taken back
	Lost      Notice = "lost"      // the host daemon is away; connections go on, and the next notice says that it is back
)

// A Listener is a net.Listener whose program is told what becomes of its instance.
type Listener struct {
	*net.TCPListener
	say *announcement
}

// A PacketConn is a net.PacketConn whose program is told what becomes of its instance.
type PacketConn struct {
	*net.UDPConn
	say *announcement
}

// Listen serves a service on this host; the network is "tcp". With CanResume or Notify it fails where the
// host daemon does not know of either.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (*Listener, error) {
	h := lc.host()
	l, err := h.Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	say, err := lc.announce(ctx, l.Addr())
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
	}
	return &Listener{l.(*net.TCPListener), say}, nil
}

// ListenPacket is Listen for the network "udp".
func (lc *ListenConfig) ListenPacket(ctx context.Context, network, address string) (*PacketConn, error) {
	h := lc.host()
	c, err := h.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	say, err := lc.announce(ctx, c.LocalAddr())
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
	}
	return &PacketConn{c.(*net.UDPConn), say}, nil
}

// Close ends the service of this listener; connections that were accepted go on.
func (l *Listener) Close() error {
	l.say.end()
	return l.TCPListener.Close()
}

// Close ends the service of this socket, and its flows.
func (c *PacketConn) Close() error {
	c.say.end()
	return c.UDPConn.Close()
}

func (lc *ListenConfig) host() *Host {
	if lc.Host != nil {
		return lc.Host
	}
	return local
}
