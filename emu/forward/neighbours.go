package forward

import (
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/emu"
)

// Times of RFC 4861, 10, and what of them there is.
const (
	retransTimer  = time.Second
	reachableTime = 30 * time.Second
	maxSolicit    = 3
	maxWaiting    = 16   // packets for one neighbour
	maxNeighbours = 4096 // of a router; then the oldest is forgotten
)

// A neighbour is a node beyond a LAN port.
type neighbour struct {
	key   neighbourKey
	mac   [6]byte
	known bool
	until time.Duration // it is known to be reachable
	asked int           // solicitations since it was known
	due   time.Duration // of the next, emu.Never for none
	queue [maxWaiting]waiting
	n     int // in the queue
}

type neighbourKey struct {
	address netip.Addr
	port    uint16
}

// waiting is a packet for a neighbour whose Ethernet address is not known yet.
type waiting struct {
	packet emu.Packet
	in     uint16
}

// neighbours are known by address and port, and in the order in which they were found.
type neighbours struct {
	all map[neighbourKey]*neighbour
	old []*neighbour
}

func newNeighbours() neighbours { return neighbours{all: map[neighbourKey]*neighbour{}} }

// neighbour sends a packet to a neighbour of a LAN.
func (f *Forwarder) neighbour(p *emu.Packet, a *adjacency) {
	to := f.targets[a.more].hop.Via
	if !to.IsValid() {
		to = destination(f.router.Bytes(p), p)
	}
	f.deliver(p, a.port, to)
}

// deliver sends a packet to an address beyond a LAN port, now or when the address is resolved.
func (f *Forwarder) deliver(p *emu.Packet, port uint16, to netip.Addr) {
	n, now := f.meet(neighbourKey{to, port}), f.router.Now()
	if n.due < now { // the router was down when it was to wake
		f.router.WakeBy(n.due)
	}
	if !n.known {
		f.queue(n, p)
		return
	}
	if !f.router.Address(p, n.mac, f.ports[port].mac) {
		f.drop(p, Starved)
		return
	}
	f.leave(p, port)
	if now >= n.until && n.due == emu.Never {
		f.ask(n, now)
	}
}

// meet finds a neighbour, or begins to look for it.
func (f *Forwarder) meet(k neighbourKey) *neighbour {
	n := f.neighbours.all[k]
	if n == nil {
		n = f.enter(k)
		f.ask(n, f.router.Now())
	}
	return n
}

// enter makes a neighbour that is not known yet.
func (f *Forwarder) enter(k neighbourKey) *neighbour {
	s := &f.neighbours
	if len(s.old) == maxNeighbours {
		f.forget(s.old[0])
	}
	n := &neighbour{key: k, due: emu.Never}
	s.all[k] = n
	s.old = append(s.old, n)
	return n
}

// forget takes a neighbour away. Who sent what waits for it is told.
func (f *Forwarder) forget(n *neighbour) {
	s := &f.neighbours
	delete(s.all, n.key)
	s.old = slices.DeleteFunc(s.old, func(o *neighbour) bool { return o == n })
	for i := range n.n {
		p := n.queue[i].packet
		p.Port = n.queue[i].in
		f.refuse(&p, HostUnreachable, 0)
		f.router.Send(p, p.Port)
	}
	n.n = 0
}

// queue keeps a packet until its neighbour answers. The oldest gives way (RFC 4861, 7.2.2).
func (f *Forwarder) queue(n *neighbour, p *emu.Packet) {
	if n.n == maxWaiting {
		old := n.queue[0].packet
		f.drop(&old, QueueFull)
		f.router.Send(old, old.Port)
		copy(n.queue[:], n.queue[1:])
		n.n--
	}
	n.queue[n.n] = waiting{*p, p.Port}
	n.n++
	p.Port = emu.Taken
}

// ask solicits a neighbour and waits for it to answer.
func (f *Forwarder) ask(n *neighbour, now time.Duration) {
	n.asked++
	f.solicit(n)
	n.due = now + retransTimer
	f.router.WakeBy(n.due)
}

// tend asks neighbours again that do not answer, forgets those that never do, and says when it is to be called next.
func (f *Forwarder) tend(now time.Duration) time.Duration {
	for i := 0; i < len(f.neighbours.old); i++ {
		switch n := f.neighbours.old[i]; {
		case n.due > now:
		case n.asked < maxSolicit:
			f.ask(n, now)
		default:
			f.forget(n)
			i--
		}
	}
	next := emu.Never
	for _, n := range f.neighbours.old {
		next = min(next, n.due)
	}
	return next
}

// learn takes note of a neighbour's Ethernet address: one that was asked for, or that somebody said who asks for
// ours. The latter is to be confirmed when it is used.
func (f *Forwarder) learn(k neighbourKey, mac [6]byte, confirmed bool) {
	if !f.ports[k.port].lan || mac[0]&1 != 0 {
		return
	}
	n := f.neighbours.all[k]
	switch {
	case n == nil && confirmed:
		return // nobody asked
	case n == nil:
		n = f.enter(k)
	case n.known && n.mac == mac && !confirmed:
		return
	}
	n.mac, n.known = mac, true
	if confirmed {
		n.until, n.asked, n.due = f.router.Now()+reachableTime, 0, emu.Never
	} else if n.n > 0 {
		n.asked, n.due = 0, emu.Never
	}
	f.flush(n)
}

// flush sends what waits for a neighbour.
func (f *Forwarder) flush(n *neighbour) {
	queue, count := n.queue, n.n
	n.n = 0
	for i := range count {
		p := queue[i].packet
		p.Port = queue[i].in
		f.deliver(&p, n.key.port, n.key.address)
		f.router.Send(p, p.Port)
	}
}

// declass takes the classes of packets that wait.
func (s *neighbours) declass() {
	for _, n := range s.old {
		for i := range n.n {
			n.queue[i].packet.Class = 0
		}
	}
}

// LetGo forgets all that wait for neighbours, who are asked anew: nobody is told.
func (f *Forwarder) LetGo(r *emu.Router) {
	for _, n := range f.neighbours.old {
		for i := range n.n {
			r.Release(n.queue[i].packet)
		}
		n.n = 0
	}
}
