package flow

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// quoted reads the packet that an error quotes: addresses, and ports as far as they are there.
func (p *packet) quoted() (packet, bool) {
	b, ok := header.IPv6(p.b).Quoted(p.l4)
	if !ok {
		return packet{}, false
	}
	q := packet{b: b, proto: sid.Proto(b.Next())}
	q.src, q.dst = addrs(b)
	t := header.Transport(b[ip6Len:])
	if q.proto == header.Fragment {
		if len(t) < 8 {
			return q, false
		}
		q.proto = sid.Proto(t[0])
		if binary.BigEndian.Uint16(t[2:])&0xfff8 != 0 {
			return q, true
		}
		t = t[8:]
	}
	if len(t) < 8 {
		return q, true
	}
	q.sport, q.dport = t.Ports()
	if q.proto == sid.ICMPv6 {
		q.sport = t.Echo()
		q.dport = q.sport
	}
	return q, true
}

// rewriteError replaces the addresses of the error and of the packet in it.
func (p *packet) rewriteError(src, dst, innerSrc, innerDst netip.Addr) {
	s, d := innerSrc.As16(), innerDst.As16()
	p.replace(p.l4+icmpLen+8, append(s[:], d[:]...), p.sumAt())
	p.rewrite(src, dst)
}

// EarlyErrors is how long after a peer was heard last a router's "no route" to it is kept from the kernel's TCP.
const EarlyErrors = time.Second

// early: such an error makes the kernel send again sooner, into nothing, and not at once when it is kicked.
func (m *Machine) early(now time.Time, p *packet, c *entry) bool {
	return p.typ == unreachable && p.code == noRoute && c.proto == sid.TCP && c.state == Bound &&
		now.Sub(c.heard) < EarlyErrors && m.told
}

// nowhere: a router knew no way to the instance that was chosen, or its neighbour did not answer.
func (m *Machine) nowhere(p, q *packet, c *entry) bool {
	return p.typ == unreachable && (p.code == noRoute || p.code == noNeighbour) && c.Role == Client && c.state == Connecting &&
		m.inAS(q.dst) && sid.LocatorOf(p.src) != sid.LocatorOf(q.dst)
}

// sentTo: a packet to the address is one that the flow sent. A router may have written another locator on the way.
func (m *Machine) sentTo(dst netip.Addr, c *entry) bool {
	if !m.inAS(dst) && !m.isService(dst) {
		return false
	}
	if c.state == Connecting {
		return sid.Low(dst) == sid.Low(c.remote)
	}
	return dst == c.remote || c.peer.IsValid() && sid.Low(dst) == sid.Low(c.peer) || sid.Low(dst) == sid.Low(c.Conn.peer)
}

// errorIn: what the flow sent did not arrive.
func (m *Machine) errorIn(now time.Time, p *packet, c *entry) {
	q, ok := p.quoted()
	if !ok || q.src != p.dst || q.proto != c.proto || c.state == Lost {
		m.drop("drop_unusable_error")
		return
	}
	if c.state == Blocked {
		m.drop("drop_blocked")
		return
	}
	if !m.sentTo(q.dst, c) {
		m.drop("drop_unusable_error")
		return
	}
	if m.early(now, p, c) {
		m.drop("drop_early_error")
		return
	}
	nowhere := m.nowhere(p, &q, c)
	from := p.src
	if from == q.dst || sid.Low(from) == sid.Low(c.remote) {
		from = c.remote // the peer itself goes by the name that the socket knows
	}
	p.rewriteError(from, c.local, c.local, c.remote)
	if nowhere {
		m.tell("held", p.b, Drop)
		return
	}
	// A program that opens a socket for a datagram that it has announced elsewhere is often a moment late.
	holds := c.proto == sid.TCP || c.proto == sid.UDP && p.code == noSuchPort
	if p.typ == unreachable && c.Role == Client && c.state == Connecting && holds {
		m.tell("held", p.b, Pass)
		return
	}
	m.pass(p.b)
}

// errorOut: a local socket is gone, or this host cannot take what came.
func (m *Machine) errorOut(p *packet, here int) {
	q, ok := p.quoted()
	if !ok {
		m.drop("drop_unusable_error")
		return
	}
	seen := packet{src: q.dst, dst: q.src, sport: q.dport, dport: q.sport, proto: q.proto}
	c, hand := m.byTuple[serverTuple(&seen)], m.at(here)
	if m.isService(q.src) {
		c = m.clientFlow(clientTuple(&seen))
	}
	if c != nil && c.state == HalfOpen {
		c = nil // nobody has spoken yet
	}
	switch {
	case c != nil && c.state == Blocked:
		m.drop("drop_blocked")
	case c != nil && c.state == Bound && hand < 0 && m.slots[c.slot].uplink == 0:
		m.drop("drop_no_uplink")
	case c != nil && c.state == Bound:
		self := m.slots[c.slot].locator.Addr(uint64(c.ID))
		p.rewriteError(self, c.peer, c.peer, self)
		m.by(c.slot, here, "", p.b)
	case c != nil || !m.isService(q.dst) || !m.isPeer(q.src):
		m.drop("drop_leak")
	case hand < 0:
		m.drop("drop_no_uplink")
	default:
		self := m.slots[hand].locator.Addr(sid.Low(q.dst)) // no flow yet: the instance itself answers
		p.rewriteError(self, q.src, q.src, self)
		m.pass(p.b)
	}
}
