package flow

import (
	"time"

	"scaffold.dev/scaffold/sid"
)

// How long an idle flow is kept, docs/protocol.md §3.6.
const (
	EndedIdle      = 60 * time.Second
	DatagramIdle   = 300 * time.Second
	ConnectingIdle = 150 * time.Second
	HalfClosedIdle = time.Hour
	HalfOpenIdle   = 150 * time.Second
	PortReuse      = 5 * time.Second // from then on a datagram port may be another socket's

	RetiredFor = 60 * time.Second // what comes late for a socketID that a flow gave up goes unanswered
	StrayFor   = 2 * time.Second  // from then on what nobody knows is reset
)

// limit is how long the flow may idle, 0 for ever: a TCP flow lives as long as its sockets.
func (c *Conn) limit() time.Duration {
	switch {
	case c.proto != sid.TCP:
		return DatagramIdle
	case c.rst || c.finIn && c.finOut:
		return EndedIdle
	case c.finIn || c.finOut:
		return HalfClosedIdle
	case c.state == Connecting:
		return ConnectingIdle
	case c.state == HalfOpen:
		return HalfOpenIdle
	}
	return 0
}

// Expire ends the flows that have idled too long.
func (m *Machine) Expire(now time.Time) {
	for _, c := range m.byTuple {
		if l := c.limit(); l > 0 && !now.Before(c.seen.Add(l)) {
			m.end(c)
		}
	}
}

// Deadline is when Expire has something to do; zero when it has not.
func (m *Machine) Deadline() (d time.Time) {
	for _, c := range m.byTuple {
		l := c.limit()
		if t := c.seen.Add(l); l > 0 && (d.IsZero() || t.Before(d)) {
			d = t
		}
	}
	return d
}
