package userstack

import (
	"fmt"
	"net"
	"slices"
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

	mu   sync.Mutex                // taken after the stack's, never the other way round
	at   map[string]tcpip.Endpoint // the listening socket of each port
	turn []string                  // ports, in the order in which they are asked next
}

// ListenTCP takes connections to the link-local address on a TCP port.
func (s *Stack) ListenTCP(port uint16) (*Listener, error) {
	l := &Listener{stack: s, tcp: port, kick: make(chan struct{}, 1), done: make(chan struct{}), at: map[string]tcpip.Endpoint{}}
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
	l.at[name] = ep
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
func (l *Listener) Accept() (*Conn, error) {
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
		ep, queue, err := l.at[name].Accept(nil)
		if err != nil {
			continue
		}
		l.turn = append(slices.Delete(l.turn, i, i+1), name)
		l.wake() // for the next, which may wait already
		return newConn(name, gonet.NewTCPConn(queue, ep), ep)
	}
	return nil
}

// shut stops accepting at a port.
func (l *Listener) shut(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ep := l.at[name]; ep != nil {
		ep.Close()
	}
	delete(l.at, name)
	l.turn = slices.DeleteFunc(l.turn, func(n string) bool { return n == name })
}

// end stops accepting. The stack's lock is held, or nobody knows the listener yet.
func (l *Listener) end() {
	l.once.Do(func() { close(l.done) })
	l.mu.Lock()
	names := slices.Clone(l.turn)
	l.mu.Unlock()
	for _, name := range names {
		l.shut(name)
	}
}

// Close implements net.Listener.
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
