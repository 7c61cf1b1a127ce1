package userstack

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// Window is how much a peer may send before we have read it, in bytes. A host that leaves the cutting of
// segments to its device sends them whole, and an OpenFlow message has 65535 bytes.
const Window = 32 << 10

// sendBuffer is what waits for a peer's acknowledgement, in bytes for each connection.
const sendBuffer = 64 << 10

// How long what is left of a connection is kept. Whoever cuts a cable must not leave us connections for hours.
const (
	timeWait  = time.Second
	finWait   = 5 * time.Second
	unheard   = 20 * time.Second // for what was sent, before the connection is given up
	keepAfter = 15 * time.Second // of silence: is the peer still there?
	keepEvery = 5 * time.Second
	keepTries = 3
)

// Config is what a Stack is made of.
type Config struct {
	MAC       [6]byte
	LinkLocal netip.Addr // the address on every port
	// Output sends a frame out of a port. It must not wait, nor call the stack; the frame is its own. It is
	// called from several goroutines, until Close returns.
	Output func(port string, frame []byte)
}

// A Stack may be used from several goroutines.
type Stack struct {
	cfg Config

	mu        sync.Mutex // over what follows; not held while gVisor calls us
	ports     map[string]*port
	listeners map[*Listener]bool
	closed    bool

	udp sync.Map // by port: func(Datagram)
}

// A port is one of gVisor's stacks, with one interface. One stack with many interfaces would not tell twins on
// two ports from each other: a connection of the one would hide the listening socket from the other.
type port struct {
	link  *link
	stack *stack.Stack
}

// theNIC is the one interface of a port's stack.
const theNIC tcpip.NICID = 1

// ErrClosed is what a stack's methods return after Close.
var ErrClosed = errors.New("userstack: closed")

// quiet takes gVisor's own log lines, which would go to stderr: they tell of single packets of others.
var quiet sync.Once

type silent struct{}

func (silent) Emit(int, log.Level, time.Time, string, ...any) {}

// New makes a stack without ports.
func New(cfg Config) (*Stack, error) {
	if !cfg.LinkLocal.Is6() || !cfg.LinkLocal.IsLinkLocalUnicast() || cfg.LinkLocal.Zone() != "" {
		return nil, fmt.Errorf("userstack: %v is no link-local IPv6 address", cfg.LinkLocal)
	}
	if cfg.MAC[0]&1 != 0 || cfg.MAC == [6]byte{} {
		return nil, fmt.Errorf("userstack: % x is no hardware address of one interface", cfg.MAC)
	}
	quiet.Do(func() { log.SetTarget(silent{}) })
	return &Stack{cfg: cfg, ports: map[string]*port{}, listeners: map[*Listener]bool{}}, nil
}

// bound limits what a connection takes.
func (p *port) bound() tcpip.Error {
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(false)
	wait, linger := tcpip.TCPTimeWaitTimeoutOption(timeWait), tcpip.TCPLingerTimeoutOption(finWait)
	for _, o := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate, &wait, &linger,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: Window, Max: Window},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: sendBuffer, Max: sendBuffer},
	} {
		if err := p.stack.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return err
		}
	}
	return nil
}

// AddPort makes a port; mtu counts from the IPv6 header on. A port that is there already is left as it is.
func (s *Stack) AddPort(name string, mtu uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.ports[name] != nil {
		return nil
	}
	p := s.newPort(name, mtu)
	if err := p.bound(); err != nil {
		p.stack.Destroy()
		return fmt.Errorf("userstack: port %s: %v", name, err)
	}
	if err := p.attach(s.cfg.LinkLocal); err != nil {
		p.stack.Destroy()
		return fmt.Errorf("userstack: port %s: %v", name, err)
	}
	s.ports[name] = p
	for l := range s.listeners {
		if err := l.open(name, p); err != nil {
			s.removeLocked(name)
			return fmt.Errorf("userstack: port %s: %w", name, err)
		}
	}
	return nil
}

func (s *Stack) newPort(name string, mtu uint32) *port {
	p := &port{link: newLink(name, mtu, s.cfg)}
	p.stack = stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{ipv6.NewProtocolWithOptions(ipv6.Options{
			DADConfigs: stack.DADConfigurations{DupAddrDetectTransmits: 0},
			NDPConfigs: ipv6.NDPConfigurations{HandleRAs: ipv6.HandlingRAsDisabled},
		})},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol6},
	})
	p.stack.SetTransportProtocolHandler(udp.ProtocolNumber, func(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
		return s.datagram(name, id, pkt)
	})
	return p
}

func (p *port) attach(linkLocal netip.Addr) tcpip.Error {
	if err := p.stack.CreateNIC(theNIC, p.link); err != nil {
		return err
	}
	return p.stack.AddProtocolAddress(theNIC, tcpip.ProtocolAddress{Protocol: ipv6.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom16(linkLocal.As16()), PrefixLen: 64}}, stack.AddressProperties{})
}

// RemovePort forgets a port and resets its connections.
func (s *Stack) RemovePort(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(name)
}

func (s *Stack) removeLocked(name string) {
	p := s.ports[name]
	if p == nil {
		return
	}
	delete(s.ports, name)
	for l := range s.listeners {
		l.shut(name)
	}
	p.stack.Destroy()
}

// Ports are the names of all ports.
func (s *Stack) Ports() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.ports {
		names = append(names, name)
	}
	return names
}

// Deliver takes an Ethernet frame that came in by a port; whatever is not for us is dropped. The frame is not
// kept.
func (s *Stack) Deliver(port string, frame []byte) {
	s.mu.Lock()
	p := s.ports[port]
	s.mu.Unlock()
	if p != nil {
		p.link.deliver(frame)
	}
}

// Close resets all connections. When it returns no goroutine of the stack is left.
func (s *Stack) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for l := range s.listeners {
		l.end()
	}
	for name := range s.ports {
		s.removeLocked(name)
	}
}
