package legs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// mostFirsts is how many first packets wait to be looked at: the controller asks about no more at a time.
const mostFirsts = 1024

// A Kernel makes the connections.
type Kernel interface {
	// Await takes a port of one of this machine's addresses for one client.
	Await(own netip.Addr, client netip.AddrPort) (Awaited, error)
	// Dial connects to a server from a port of one of this machine's addresses, once ready returns without an error. A
	// *trunk.Refused says that the server refused.
	Dial(ctx context.Context, own netip.Addr, server netip.AddrPort, ready func(at netip.AddrPort) error) (c *net.TCPConn, host, mine frame.Options, err error)
}

// Awaited is a port where a client is waited for.
type Awaited interface {
	At() netip.AddrPort
	Accept(context.Context) (c *net.TCPConn, mine frame.Options, err error)
	Close() error
}

// Legs are those of one agent. Methods may be called by any goroutine.
type Legs struct {
	kernel Kernel
	own    []netip.Addr
	firsts chan *first

	mu     sync.Mutex
	send   func(*apiv1.BoostReport) // nil: no controller is there
	all    map[key]*leg
	last   uint64
	asking map[uint64]chan error // who waits for the switches, by number
}

type key struct {
	far            bool
	client, server netip.AddrPort
}

type leg struct {
	lane   uint64
	at     netip.AddrPort
	number uint64 // of the question that waits for an answer; 0: none
}

// New has none. The addresses are the agent's; what comes to it goes to the first of its family.
func New(own []netip.Addr, kernel Kernel) *Legs {
	return &Legs{kernel: kernel, own: own, firsts: make(chan *first, mostFirsts), all: map[key]*leg{}, asking: map[uint64]chan error{}}
}

// Use says by which way a controller is told; nil: none is there.
func (l *Legs) Use(send func(*apiv1.BoostReport)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send = send
}

var (
	errAway   = errors.New("no controller is there that could tell the switches")
	errFamily = errors.New("this agent has no address of that family")
)

// tell tells the controller. It is called with the lock held.
func (l *Legs) tell(m *apiv1.BoostReport) error {
	if l.send == nil {
		return errAway
	}
	l.send(m)
	return nil
}

// from is the address that this agent has towards an end host.
func (l *Legs) from(host netip.Addr) (netip.Addr, error) {
	i := slices.IndexFunc(l.own, func(a netip.Addr) bool { return a.Is4() == host.Is4() })
	if i < 0 {
		return netip.Addr{}, fmt.Errorf("%v: %w", host, errFamily)
	}
	return l.own[i], nil
}

// First takes what the controller says of a client's first packet.
func (l *Legs) First(m *apiv1.BoostSYN) {
	client, err := netip.ParseAddrPort(m.Client)
	server, err2 := netip.ParseAddrPort(m.Server)
	f := &first{l: l, number: m.Number, lane: m.Lane, client: client, server: server}
	if cmp.Or(err, err2) == nil {
		select {
		case l.firsts <- f:
			return
		default:
		}
	}
	_ = f.Pass() // where nobody hears it the controller lets it pass by itself
}

// Next waits for a first packet.
func (l *Legs) Next(ctx context.Context) (agent.SYN, error) {
	select {
	case f := <-l.firsts:
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Dial connects to a server for a client: from a port of this machine's, which the server's switches know by then.
func (l *Legs) Dial(ctx context.Context, lane uint64, client, server netip.AddrPort) (*net.TCPConn, frame.Options, frame.Options, error) {
	own, err := l.from(server.Addr())
	if err != nil {
		return nil, frame.Options{}, frame.Options{}, &trunk.Refused{Reason: frame.NoRoom}
	}
	k := key{true, client, server}
	c, host, mine, err := l.kernel.Dial(ctx, own, server, func(at netip.AddrPort) error { return l.ask(ctx, k, lane, at) })
	if err != nil {
		l.over(k)
	}
	return c, host, mine, err
}

// ask has the switches of the server know from which port this agent connects.
func (l *Legs) ask(ctx context.Context, k key, lane uint64, at netip.AddrPort) error {
	answer := make(chan error, 1)
	l.mu.Lock()
	l.last++
	number := l.last
	of := &leg{lane, at, number}
	err := l.tell(&apiv1.BoostReport{Report: &apiv1.BoostReport_Leg{Leg: k.message(of)}})
	if err == nil {
		l.all[k], l.asking[number] = of, answer
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.asking, number)
		of.number = 0
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready takes what the controller says of a leg.
func (l *Legs) Ready(m *apiv1.BoostLegReady) {
	var err error
	if m.Refused != "" {
		err = errors.New(m.Refused)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.asking[m.Number] <- err: // nil: nobody waits any more
	default:
	}
}

// Over notes that a session has ended, which may have been one of these.
func (l *Legs) Over(client, server string) {
	from, err := netip.ParseAddrPort(client)
	to, err2 := netip.ParseAddrPort(server)
	if cmp.Or(err, err2) != nil {
		return
	}
	l.over(key{false, from, to})
	l.over(key{true, from, to})
}

func (l *Legs) over(k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[k] == nil {
		return
	}
	delete(l.all, k)
	// Who is away is told by All what is left.
	_ = l.tell(&apiv1.BoostReport{Report: &apiv1.BoostReport_LegOver{LegOver: &apiv1.BoostLegOver{Far: k.far, Client: k.client.String(), Server: k.server.String()}}})
}

// Know notes a leg of a process before this one, if that session is one: its end here is another address than the one that its end
// host sees.
func (l *Legs) Know(s trunk.SessionStatus) {
	seen := s.Open.Client
	if s.Mine {
		seen = s.Open.Server
	}
	k := key{!s.Mine, s.Open.Client, s.Open.Server}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.End.IsValid() && s.End != seen && slices.Contains(l.own, s.End.Addr()) && l.all[k] == nil {
		l.all[k] = &leg{lane: s.Open.Lane, at: s.End}
	}
}

// All are all that there are, as a controller is told that does not know them.
func (l *Legs) All() (list []*apiv1.BoostLeg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, of := range l.all {
		list = append(list, k.message(of))
	}
	return list
}

func (k key) message(of *leg) *apiv1.BoostLeg {
	return &apiv1.BoostLeg{Number: of.number, Lane: of.lane, Far: k.far, Client: k.client.String(), Server: k.server.String(), At: of.at.String()}
}
