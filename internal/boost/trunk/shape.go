package trunk

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/tune"
)

// A shaping is how the trunk uses one of its paths: what the kernel has counted, and what follows.
type shaping struct {
	tuner    *tune.Tuner // nil: no connection has been made
	decision tune.Decision
	at       time.Time // of the last decision
	looks    int       // since then, and
	bound    int       // how often bytes waited for the path
	sessions int       // at most at a time
	changed  bool      // connections have come or gone since then, or are doubted, or no more
}

// counted are the kernel's counts of a connection, as of the last decision.
type counted struct {
	acked, sent, resent       uint64
	busy, sendBuf, receiveBuf uint64 // microseconds
}

func countedBy(i *unix.TCPInfo) counted {
	return counted{i.Bytes_acked, i.Bytes_sent, i.Bytes_retrans, i.Busy_time, i.Sndbuf_limited, i.Rwnd_limited}
}

func micros(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }

// remembers is for how long the kernel knows the shortest round trip of a connection that carries something
// (net.ipv4.tcp_min_rtt_wlen). On one that carries nothing it never forgets one.
const remembers = 300 * time.Second

// shortest is the shortest round trip that the kernel has seen on the path's connections; 0: none.
func (p *Path) shortest(now time.Time) (rtt time.Duration) {
	for _, c := range p.conns() {
		if c.shortest > 0 && c.current(now, remembers) && (rtt == 0 || c.shortest < rtt) {
			rtt = c.shortest
		}
	}
	return rtt
}

// conns are the path's connections.
func (p *Path) conns() iter.Seq2[connectionID, *connection] {
	return func(yield func(connectionID, *connection) bool) {
		for id, c := range p.t.conns {
			if c.path == p && !yield(id, c) {
				return
			}
		}
	}
}

// shape looks whether the path is what binds, and decides once in an interval. It follows measure.
func (p *Path) shape(now time.Time) {
	s, t := &p.shaping, p.t
	if s.tuner == nil || !p.has() {
		return
	}
	s.looks++
	switch n := t.sender.Backlogs(); {
	case n > 0:
		s.bound++
		s.sessions = max(s.sessions, n)
	case len(t.starved) > 0 && p.full():
		// Credit is twice what a path carries in a round trip, and comes back a round trip later: a sender that waits for it has
		// nothing left behind a window which is as small as CUBIC or the other agent's socket makes it, and it is that window
		// which binds.
		s.bound++
		s.sessions = max(s.sessions, len(t.starved))
	}
	m := tune.Measure{Now: now, Sessions: s.sessions, Bound: 2*s.bound > s.looks}
	m.MinRTT = p.shortest(now)
	for _, c := range p.conns() { // all of them over one path: what is slow of one is its own loss
		if !c.rests && (m.RTT == 0 || c.rtt < m.RTT) { // what one that rests has measured is long ago
			m.RTT = c.rtt
		}
	}
	passed, interval := now.Sub(s.at), tune.Interval(m.MinRTT)
	if passed < interval {
		return
	}
	if s.changed || passed > 2*interval { // of what connections carried that are gone nothing is known, nor of a time in which nobody looked
		for _, c := range p.conns() {
			c.was = c.now
		}
		s.at, s.looks, s.bound, s.sessions, s.changed = now, 0, 0, 0, false
		p.decide(s.tuner.Skip(s.decision, int(passed/interval)))
		return
	}
	var all counted
	for _, c := range p.conns() {
		all.acked += c.now.acked - c.was.acked
		all.sent += c.now.sent - c.was.sent
		all.resent += c.now.resent - c.was.resent
		all.busy += c.now.busy - c.was.busy
		all.sendBuf += c.now.sendBuf - c.was.sendBuf
		all.receiveBuf += c.now.receiveBuf - c.was.receiveBuf
		c.was = c.now
	}
	m.Length, m.Flows = passed, p.carry(p.usable())
	m.Rate, m.Sent, m.Resent = float64(all.acked)/passed.Seconds(), all.sent, all.resent
	m.Busy, m.SendBuffer, m.ReceiveBuffer = micros(all.busy), micros(all.sendBuf), micros(all.receiveBuf)
	s.at, s.looks, s.bound, s.sessions = now, 0, 0, 0
	p.decide(s.tuner.Step(m))
}

// has reports whether the path has a connection.
func (p *Path) has() bool {
	for range p.conns() {
		return true
	}
	return false
}

// full reports whether most connections of the path that carry chunks take no more.
func (p *Path) full() bool {
	carry, full := 0, 0
	for _, c := range p.conns() {
		switch {
		case c.rests:
		case c.full:
			full++
			fallthrough
		default:
			carry++
		}
	}
	return carry > 0 && 2*full >= carry
}

// decide has all connections of the path do what was decided.
func (p *Path) decide(d tune.Decision) {
	before := p.wants()
	p.shaping.decision = d
	if p.wants() != before {
		wake(p.rethinks)
	}
	p.rest()
	for _, c := range p.conns() {
		c.obey(d, p.carry(p.usable()))
	}
}

// carry is how many of so many connections carry chunks: as many as this end wants, the others are there for the other one.
func (p *Path) carry(of int) int {
	if d := p.shaping.decision; d.Beside || p.t.Shape.First > 0 {
		return min(max(d.Connections, 1), of)
	}
	return of
}

// obey tells the kernel how a connection is to send.
func (c *connection) obey(d tune.Decision, of int) {
	rate := ^uint64(0) // as it will
	if d.Cap > 0 {
		rate = uint64(d.Cap) / uint64(max(of, 1))
	}
	if rate == c.rate && d.Control == c.control {
		return
	}
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // all of it makes things better, none is needed
		if d.Control != c.control {
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, d.Control)
		}
		if rate != c.rate {
			_ = unix.SetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate)
		}
	})
	c.rate, c.control = rate, d.Control
}

// rest has connections carry no chunks where fewer bring as much, or the path has others on it who are to have their part.
func (p *Path) rest() {
	left := p.carry(p.usable())
	for _, c := range p.ranked() {
		if c.rests = c.retires || left == 0; !c.rests {
			left--
		}
		p.t.sender.Rest(c.id, c.rests)
	}
}

// ranked are the path's connections in the order in which they are to carry chunks: those that answer before those that are
// doubted, and of each those with the lowest numbers first, the oldest but for what died.
func (p *Path) ranked() []*connection {
	return slices.SortedFunc(maps.Values(maps.Collect(p.conns())), func(a, b *connection) int {
		switch {
		case a.doubted == b.doubted:
			return cmp.Compare(a.id, b.id)
		case a.doubted:
			return 1
		}
		return -1
	})
}

// controlOf is the congestion control that the kernel uses on a connection.
func controlOf(fd int) string {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return ""
	}
	return name
}
