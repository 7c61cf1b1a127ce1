package emu

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// An End is one interface that the network makes, down and without addresses, or one that is there already. What
// is made goes with the network.
type End struct {
	Netns string `json:"netns,omitempty"` // path of the network namespace; "" for the engine's own
	Dev   string `json:"dev"`             // name of the interface there
	MTU   int    `json:"mtu,omitempty"`
	Taken bool   `json:"taken,omitempty"` // the interface exists, a machine's own or a macvlan: all that it receives enters
}

// A device is an interface from the side of the network.
type device interface {
	fd() int
	read(b []byte) (int, unix.Errno)
	write(b []byte) unix.Errno
	writev(iov *[2]unix.Iovec) unix.Errno
	address() [6]byte
	arrived(now int64) int64 // when the frame that was read last reached it, in nanoseconds of CLOCK_MONOTONIC
	empty(now int64)         // it was found without frames
	sight() error            // why it is not known when frames arrive; nil where it is
	close()
}

// An Edge is where packets of real programs enter and leave: an interface in a namespace.
type Edge struct {
	net    *Net
	end    End
	number int
	shard  *shard
	device device
	out    *way    // from here
	port   *Port   // nil for a router's own side of a port
	mac    [6]byte // Ethernet address of the network's side
	peer   [6]byte // and of whoever is beyond
	iov    [2]unix.Iovec
	count  EdgeCounters
	empty  time.Duration // when it was last known to have no frames
}

// EdgeCounters count frames; a train is one.
type EdgeCounters struct {
	In      uint64 `json:"in"`      // from the interface
	Out     uint64 `json:"out"`     // to it
	Refused uint64 `json:"refused"` // that it did not take: it is down
	Starved uint64 `json:"starved"` // for which the network had no memory
}

// Edge adds an interface. It needs root, and a network with a real clock.
func (n *Net) Edge(end End) (*Edge, error) {
	switch {
	case n.running:
		return nil, ErrRunning
	case n.opt.Virtual:
		return nil, fmt.Errorf("interface %s: in virtual time there are no interfaces; let a program make packets", end.Dev)
	}
	open := openTap
	if end.Taken {
		open = openTaken
	}
	d, err := open(end)
	if err != nil {
		return nil, err
	}
	e := &Edge{net: n, end: end, number: len(n.edges), device: d, peer: d.address()}
	e.mac = [6]byte{0x02, 0x5c, 0xaf, byte(e.number >> 16), byte(e.number >> 8), byte(e.number)}
	if t, ok := d.(*taken); ok {
		e.mac = t.mac // a macvlan gets no frames for another
	}
	n.edges = append(n.edges, e)
	return e, nil
}

// Name is the name of the interface.
func (e *Edge) Name() string { return e.end.Dev }

// End is the interface.
func (e *Edge) End() End { return e.end }

// Counters are the present counters; to be called inside [Net.Do] or [Edge.Do].
func (e *Edge) Counters() EdgeCounters { return e.count }

// Blind is why nobody knows when frames reach the interface, and so how long they wait there; nil where it is known.
func (e *Edge) Blind() error { return e.device.sight() }

// Do calls f on the edge's thread.
func (e *Edge) Do(f func()) error { return e.shard.ask(f) }

// Peer is the Ethernet address that routed packets are sent to: of an interface that the network made, its own, until
// it sends from another one. To be called inside [Net.Do].
func (e *Edge) Peer() [6]byte { return e.peer }

// SetCarrier tells whoever is beyond whether a cable is plugged in, as a switch does; an interface that the network
// made has one until then. It may be called from any goroutine.
func (e *Edge) SetCarrier(on bool) error {
	t, ok := e.device.(*tap)
	if !ok {
		return fmt.Errorf("interface %s is not the network's own: its carrier is not to be changed", e.end.Dev)
	}
	if err := t.setCarrier(on); err != nil {
		return fmt.Errorf("interface %s: carrier: %w", e.end.Dev, err)
	}
	return nil
}

func (e *Edge) attach(w *way) (*Port, error) {
	if e.out != nil {
		return nil, fmt.Errorf("interface %s has a link already; expected one", e.end.Dev)
	}
	e.out = w
	e.port = &Port{out: w}
	return e.port, nil
}

func (e *Edge) close() { e.device.close() }

// take writes packets to the interface.
func (e *Edge) take(s *shard, batch []Packet) {
	for i := range batch {
		e.emit(s, &batch[i])
	}
}

func (e *Edge) emit(s *shard, p *Packet) {
	a := s.arena
	b := a.bytes(p.slot)
	if p.flags&flagRouted != 0 {
		copy(b[atEther:], e.peer[:])
		own := e.Address()
		copy(b[atEther+6:], own[:])
	}
	a.write(p)
	var errno unix.Errno
	if f := &a.frames[p.slot]; p.flags&flagTrain == 0 || uint32(p.count) == f.Count {
		errno = e.device.write(b)
	} else {
		header, payload := cut(s.head[:], b, *f, *p)
		e.iov[0].Base, e.iov[1].Base = &header[0], &payload[0]
		e.iov[0].SetLen(len(header))
		e.iov[1].SetLen(len(payload))
		errno = e.device.writev(&e.iov)
	}
	if e.count.Out++; errno != 0 {
		e.count.Out--
		e.refuse()
	}
	a.release(p.slot)
}

func (e *Edge) refuse() {
	e.count.Refused++
	if e.port != nil {
		e.port.in.refused++
	}
}

// Address is the Ethernet address of the network's side of the edge: of an interface that was there already, its own.
func (e *Edge) Address() [6]byte { return e.mac }

// receive reads what waits at the interface.
func (e *Edge) receive(s *shard) {
	for range batch {
		b := s.arena.slot(s.spare)
		n, errno := e.device.read(b)
		switch {
		case errno == unix.EAGAIN:
			e.empty = s.now
			e.device.empty(e.net.zero + int64(s.now))
			return
		case errno == unix.EINTR:
			continue
		case errno != 0: // somebody removed the interface
			s.poll.forget(e.device.fd())
			return
		}
		if at := e.arrived(s); n > vnetLen+etherLen && e.out != nil {
			e.enter(s, b[:n], at)
		}
	}
}

// arrived is when the frame that was just read reached the interface: after the interface was last found empty, and not
// in the future, whatever a clock says that somebody set.
func (e *Edge) arrived(s *shard) time.Duration {
	at := e.device.arrived(e.net.zero+int64(s.now)) - e.net.zero
	return min(max(time.Duration(at), e.empty), s.now)
}

// batch is how many frames of one interface are read before others have their turn.
const batch = 32

// enter sends the frame in the spare slot on its way, which began when it reached the interface.
func (e *Edge) enter(s *shard, b []byte, at time.Duration) {
	frame, id, c := describe(b), s.spare, 1
	if len(b) <= smallFrame {
		c = 0
	}
	free, ok := s.arena.take(c)
	if !ok {
		e.count.Starved++
		e.out.starved++
		return
	}
	if c == 0 {
		id = free
		copy(s.arena.slot(id), b)
	} else {
		s.spare = free
	}
	e.count.In++
	copy(e.peer[:], b[atEther+6:])
	s.arena.frames[id], s.arena.refs[id] = frame, 1
	p := Packet{slot: id, count: uint16(frame.Count), length: uint16(frame.Bytes - etherLen)}
	if frame.Count > 1 {
		p.flags, p.length = flagTrain, uint16(frame.Head+frame.Size-etherLen)
	}
	s.one[0] = p
	e.out.enter(s, s.one[:], at)
}
