package userstack

import (
	"fmt"
	"net"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// backlog is how many connections of one port may wait to be accepted; as many may be half open. Beyond that
// the stack keeps nothing (SYN cookies).
const backlog = 16

// A Listener takes TCP connections on all ports, also those that come later.
type Listener struct {
	stack *Stack
	tcp   uint16
	kick  chan struct{} // somebody may wait
	done  chan struct{}
	once  sync.Once

	mu   sync.Mutex // taken after the stack's, never the other way round
	at   map[string]*accepting
	turn []string // ports, in the order in which they are asked next
}

// accepting is the listening socket of one port, and what came of it.
type accepting struct {
	ep    tcpip.Endpoint
	conns map[*Conn]bool
}

// ListenTCP takes connections to the link-local address on a TCP port.
func (s *Stack) ListenTCP(port uint16) (*Listener, error) {
	l := &Listener{stack: s, tcp: port, kick: make(chan struct{}, 1), done: make(chan struct{}), at: map[string]*accepting{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	for name, p := range s.ports {
		if err := l.open(name, p); err != nil {
			l.end()
			return nil, fmt.Errorf("userstack: listen on TCP port %d: %w", port, err)
		}
	}
	s.listeners[l] = true
	return l, nil
}

// open listens on a port.
func (l *Listener) open(name string, p *port) error {
	var queue waiter.Queue
	ep, err := p.stack.NewEndpoint(tcp.ProtocolNumber, ipv6.ProtocolNumber, &queue)
	if err != nil {
		return fmt.Errorf("%v", err)
	}
	if err := l.prepare(ep); err != nil {
		ep.Close()
		return fmt.Errorf("%v", err)
	}
	entry := waiter.NewFunctionEntry(waiter.ReadableEvents, func(waiter.EventMask) { l.wake() })
	queue.EventRegister(&entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[name] = &accepting{ep: ep, conns: map[*Conn]bool{}}
	l.turn = append(l.turn, name)
	return nil
}

func (l *Listener) prepare(ep tcpip.Endpoint) tcpip.Error {
	patience := tcpip.TCPUserTimeoutOption(unheard)
	if err := ep.SetSockOpt(&patience); err != nil {
		return err
	}
	if err := ep.Bind(tcpip.FullAddress{NIC: theNIC, Addr: tcpip.AddrFrom16(l.stack.cfg.LinkLocal.As16()), Port: l.tcp}); err != nil {
		return err
	}
	return ep.Listen(backlog)
}

func (l *Listener) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// Accept implements net.Listener; what it returns is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		if c := l.next(); c != nil {
			return c, nil
		}
		select {
		case <-l.kick:
		case <-l.done:
			return nil, net.ErrClosed
		}
	}
}

// next takes one that waits. Each port has its turn, so that one that floods does not shut others out.
func (l *Listener) next() *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, name := range l.turn {
		at := l.at[name]
		ep, queue, err := at.ep.Accept(nil)
		if err != nil {
			continue
		}
		l.turn = append(append(l.turn[:i:i], l.turn[i+1:]...), name)
		l.wake() // for the next, which may wait already
		c := &Conn{TCPConn: gonet.NewTCPConn(queue, ep), port: name, ep: ep, from: l}
		at.conns[c] = true
		keepAlive(ep)
		return c
	}
	return nil
}

func keepAlive(ep tcpip.Endpoint) {
	idle, every := tcpip.KeepaliveIdleOption(keepAfter), tcpip.KeepaliveIntervalOption(keepEvery)
	ep.SetSockOpt(&idle)
	ep.SetSockOpt(&every)
	ep.SetSockOptInt(tcpip.KeepaliveCountOption, keepTries)
	ep.SocketOptions().SetKeepAlive(true)
}

// shut ends what is at a port.
func (l *Listener) shut(name string) {
	l.mu.Lock()
	at := l.at[name]
	delete(l.at, name)
	for i, n := range l.turn {
		if n == name {
			l.turn = append(l.turn[:i:i], l.turn[i+1:]...)
			break
		}
	}
	l.mu.Unlock()
	if at == nil {
		return
	}
	at.ep.Close()
	for c := range at.conns {
		c.ep.Abort()
	}
}

// end stops accepting, and ends what was accepted. The stack's lock is held, or nobody knows the listener yet.
func (l *Listener) end() {
	l.once.Do(func() { close(l.done) })
	l.mu.Lock()
	names := append([]string(nil), l.turn...)
	l.mu.Unlock()
	for _, name := range names {
		l.shut(name)
	}
}

// Close implements net.Listener. Connections that it accepted are reset.
func (l *Listener) Close() error {
	l.stack.mu.Lock()
	defer l.stack.mu.Unlock()
	delete(l.stack.listeners, l)
	l.end()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr {
	return &net.TCPAddr{IP: l.stack.cfg.LinkLocal.AsSlice(), Port: int(l.tcp)}
}

// A Conn is a TCP connection of a host on a port.
type Conn struct {
	*gonet.TCPConn
	port string
	ep   tcpip.Endpoint
	from *Listener
}

// Port is the port that it came by.
func (c *Conn) Port() string { return c.port }

// Close ends the connection, after what was written.
func (c *Conn) Close() error {
	c.forget()
	return c.TCPConn.Close()
}

// Abort resets the connection.
func (c *Conn) Abort() {
	c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: true})
	c.Close()
}

func (c *Conn) forget() {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if at := c.from.at[c.port]; at != nil {
		delete(at.conns, c)
	}
}
