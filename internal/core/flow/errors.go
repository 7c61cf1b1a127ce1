package flow

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
)

// quoted reads the packet that an error quotes: addresses, and ports as far as they are there.
func (p *packet) quoted() (packet, bool) {
	b := p.b[p.l4+icmpLen:]
	if len(b) < ip6Len {
		return packet{}, false
	}
	q := packet{b: b, proto: sid.Proto(b[6])}
	q.src, q.dst = addrs(b)
	t := b[ip6Len:]
	if q.proto == extFragment {
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
	q.sport, q.dport = binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
	if q.proto == sid.ICMPv6 {
		q.sport = binary.BigEndian.Uint16(t[4:])
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
	if m.early(now, p, c) {
		m.drop("drop_early_error")
		return
	}
	from := p.src
	if from == q.dst || sid.Low(from) == sid.Low(c.remote) {
		from = c.remote // the peer itself goes by the name that the socket knows
	}
	p.rewriteError(from, c.local, c.local, c.remote)
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
	t := serverTuple(&seen)
	if m.isService(q.src) {
		t = clientTuple(&seen)
	}
	c, hand := m.byTuple[t], m.at(here)
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
