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
	"time"

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
	// The port is nobody else's until Free.
	Dial(ctx context.Context, own netip.Addr, server netip.AddrPort, ready func(at netip.AddrPort) error) (c *net.TCPConn, host, mine frame.Options, err error)
	Free(at netip.AddrPort)
}

// keeps is how long a port is nobody else's once its leg is over: switches write the client's address into what leaves by it until the
// controller has taken their rules out, after 5 s.
const keeps = 15 * time.Second

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

	mu      sync.Mutex
	send    func(*apiv1.BoostReport) // nil: no controller is there
	all     map[key]*leg
	last    uint64
	missing map[key]netip.AddrPort // of the last Sweep
	joined  map[key]netip.AddrPort // as the controller was told in the last join
	asking  map[uint64]chan error  // who waits for the switches, by number
}

type key struct {
	far            bool
	client, server netip.AddrPort
}

type leg struct {
	lane   uint64
	at     netip.AddrPort
	number uint64             // of the question that waits for an answer; 0: none
	stands bool               // the connection is there
	abort  context.CancelFunc // of a near one whose client has not come; else nil
}

// New has none. The addresses are the agent's; what comes to it goes to the first of its family.
func New(own []netip.Addr, kernel Kernel) *Legs {
	return &Legs{kernel: kernel, own: own, firsts: make(chan *first, mostFirsts), all: map[key]*leg{}, asking: map[uint64]chan error{}}
}

// Use says by which way a controller is told; nil: none is there. Clients who have not come by then may have been sent on to their
// servers: they are not waited for. Once one is there it hears what has ended while it was told of all.
func (l *Legs) Use(send func(*apiv1.BoostReport)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send = send
	for k, of := range l.all {
		if send == nil && of.abort != nil {
			of.abort()
			delete(l.all, k)
		}
	}
	if send == nil {
		return
	}
	for k, at := range l.joined {
		if of := l.all[k]; of == nil || of.at != at {
			_ = l.tell(k.over(at))
		}
	}
	l.joined = nil
}

func (k key) over(at netip.AddrPort) *apiv1.BoostReport {
	return &apiv1.BoostReport{Report: &apiv1.BoostReport_LegOver{LegOver: &apiv1.BoostLegOver{
		Far: k.far, Client: k.client.String(), Server: k.server.String(), At: at.String(),
	}}}
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
	var from netip.AddrPort
	c, host, mine, err := l.kernel.Dial(ctx, own, server, func(at netip.AddrPort) error {
		from = at
		return l.ask(ctx, k, lane, at)
	})
	if err != nil {
		l.over(k, from)
		l.free(from)
	} else {
		l.stands(k, from)
	}
	return c, host, mine, err
}

func (l *Legs) free(at netip.AddrPort) {
	time.AfterFunc(keeps, func() { l.kernel.Free(at) })
}

// stands notes that a connection is there.
func (l *Legs) stands(k key, at netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.all[k]; of != nil && of.at == at {
		of.stands, of.abort = true, nil
	}
}

// ask has the switches of the server know from which port this agent connects.
func (l *Legs) ask(ctx context.Context, k key, lane uint64, at netip.AddrPort) error {
	answer := make(chan error, 1)
	l.mu.Lock()
	l.last++
	number := l.last
	of := &leg{lane: lane, at: at, number: number}
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

// Over notes that a connection has ended that had this end here, which may have been one of these.
func (l *Legs) Over(client, server string, end netip.AddrPort) {
	from, err := netip.ParseAddrPort(client)
	to, err2 := netip.ParseAddrPort(server)
	if cmp.Or(err, err2) != nil {
		return
	}
	l.over(key{false, from, to}, end)
	l.over(key{true, from, to}, end)
}

// over is of the leg with that end alone: the next one of the same hosts may be there.
func (l *Legs) over(k key, at netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.all[k]
	if of == nil || of.at != at {
		return
	}
	delete(l.all, k)
	if k.far && of.stands { // else Dial does
		l.free(at)
	}
	_ = l.tell(k.over(at)) // who is away is told by All what is left
}

// Sweep forgets those whose sessions were given up before anybody had their connections. It is called now and then with all sessions;
// each stands for a while before it is looked for.
func (l *Legs) Sweep(each func(func(string, trunk.SessionStatus))) {
	l.mu.Lock()
	due := map[key]netip.AddrPort{}
	for k, of := range l.all {
		if of.stands {
			due[k] = of.at
		}
	}
	l.mu.Unlock()
	if len(due) == 0 {
		return
	}
	each(func(_ string, s trunk.SessionStatus) {
		k := key{!s.Mine, s.Open.Client, s.Open.Server}
		if !s.End.IsValid() || s.End == due[k] { // it may be about to have it
			delete(due, k)
		}
	})
	l.mu.Lock()
	again := l.missing
	l.missing = due
	l.mu.Unlock()
	for k, at := range due {
		if again[k] == at { // nor at the look before
			l.over(k, at)
		}
	}
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
		l.all[k] = &leg{lane: s.Open.Lane, at: s.End, stands: true}
	}
}

// All are all that there are, as a controller is told that does not know them: not those whose clients have not come.
func (l *Legs) All() (list []*apiv1.BoostLeg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined = map[key]netip.AddrPort{}
	for k, of := range l.all {
		if of.abort == nil {
			list = append(list, k.message(of))
			l.joined[k] = of.at
		}
	}
	return list
}

func (k key) message(of *leg) *apiv1.BoostLeg {
	return &apiv1.BoostLeg{Number: of.number, Lane: of.lane, Far: k.far, Client: k.client.String(), Server: k.server.String(), At: of.at.String()}
}
