package userstack

import (
	"context"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

// A Conn is a TCP connection with a host on a port. When the port is removed, or the stack closed, it is reset.
type Conn struct {
	*gonet.TCPConn
	port string
	ep   tcpip.Endpoint // nil of one that we began
}

func newConn(port string, c *gonet.TCPConn, ep tcpip.Endpoint) *Conn {
	idle, every := tcpip.KeepaliveIdleOption(keepAfter), tcpip.KeepaliveIntervalOption(keepEvery)
	ep.SetSockOpt(&idle)
	ep.SetSockOpt(&every)
	ep.SetSockOptInt(tcpip.KeepaliveCountOption, keepTries)
	ep.SocketOptions().SetKeepAlive(true)
	return &Conn{TCPConn: c, port: port, ep: ep}
}

// Port is the port that it came by.
func (c *Conn) Port() string { return c.port }

// Abort resets the connection; one that we began it closes.
func (c *Conn) Abort() {
	if c.ep != nil {
		c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: true})
	}
	c.Close()
}

// DialTCP connects with a host on a port.
func (s *Stack) DialTCP(ctx context.Context, port string, to netip.AddrPort) (*Conn, error) {
	s.mu.Lock()
	p := s.ports[port]
	s.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("userstack: there is no port %s", port)
	}
	c, err := gonet.DialContextTCP(ctx, p.stack,
		tcpip.FullAddress{NIC: theNIC, Addr: tcpip.AddrFrom16(to.Addr().As16()), Port: to.Port()}, ipv6.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("userstack: port %s: connect with %v: %w", port, to, err)
	}
	return &Conn{TCPConn: c, port: port}, nil
}
