package flow

import (
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
)

func (m *Machine) isService(a netip.Addr) bool  { return m.cfg.Space.Services.Contains(a) }
func (m *Machine) inAS(a netip.Addr) bool       { return m.cfg.Space.AS.Contains(a) }
func (m *Machine) isIdentity(a netip.Addr) bool { return m.cfg.Space.Identities.Contains(a) }
func isSocket(a netip.Addr) bool                { return sid.SocketID(sid.Low(a)).Valid() }

// isPeer reports whether a flow may be bound to the address.
func (m *Machine) isPeer(a netip.Addr) bool { return m.inAS(a) && isSocket(a) }

// fromWire handles what arrives on an uplink.
func (m *Machine) fromWire(now time.Time, p *packet) {
	switch {
	case !m.inAS(p.dst) && (m.isService(p.dst) || m.isIdentity(p.dst)):
		m.drop("drop_not_resolved") // only the edge may write such a destination
	case !m.inAS(p.dst) || !m.locators[sid.LocatorOf(p.dst)]:
		m.pass(p.b)
	case sid.Low(p.dst) == sid.HostSuffix:
		m.toSelf(p)
	case !p.transport():
		m.drop("drop_malformed")
	case isSocket(p.dst):
		m.toFlow(now, p)
	default:
		m.toService(p)
	}
}

// toFlow: the low half of the destination is a socketID.
func (m *Machine) toFlow(now time.Time, p *packet) {
	e := m.bySocket[sid.SocketID(sid.Low(p.dst))]
	switch {
	case e == nil && m.pinged(p).IsValid():
		m.ping(now, p, m.pinged(p))
	case e == nil:
		m.unknown(now, p)
	case p.isError():
		m.errorIn(now, p, e)
	case p.proto == sid.UDP && p.dport == sid.Port:
		m.message(p)
	case p.proto != e.proto || !m.portsFit(p, e.Conn):
		m.drop("drop_bad_port")
	case p.src == e.peer:
		m.deliver(now, p, e)
	case e.state == Blocked:
		m.drop("drop_blocked")
	case e.state == Connecting:
		m.answered(now, p, e)
	case e.state != Lost && !e.peer.IsValid() && m.isPeer(p.src):
		m.deliver(now, p, e) // accepted before the peer's address is known
	default:
		m.notThePeer(p)
	}
}

// unknown: no flow has the socketID. What a flow gave up lately gets no answer; the senders of other packets are
// told, and reset when that does not help.
func (m *Machine) unknown(now time.Time, p *packet) {
	id := sid.SocketID(sid.Low(p.dst))
	since, known := m.strays[id]
	switch at, ok := m.retired[id]; {
	case p.proto == sid.UDP && p.dport == sid.Port:
		m.message(p)
	case ok && now.Sub(at) < RetiredFor:
		m.drop("drop_retired")
	case p.isError() || p.isSYNACK() || p.flags&rst != 0 || p.piece == laterPiece:
		m.reset(p, "drop_no_flow_in")
	case known && now.Sub(since) > StrayFor:
		m.reset(p, "drop_no_flow_in")
	default:
		if !known {
			m.strays[id] = now
		}
		if m.told {
			m.out = append(m.out, Output{Verdict: Tell, Reason: "stray", Data: p.b})
			return
		}
		m.reset(p, "drop_no_flow_in")
	}
}

// portsFit: who knows a socketID may use its flow, not every port of the host.
func (m *Machine) portsFit(p *packet, c *Conn) bool {
	switch {
	case p.piece == laterPiece:
		return true
	case p.proto == sid.TCP:
		return p.dport == c.lport && p.sport == c.rport
	case c.Role == Client:
		return p.dport == c.lport && (p.proto == sid.UDP || p.typ == echoReply)
	case p.sport != c.rport:
		return false
	case p.proto == sid.ICMPv6:
		return p.typ == echoRequest
	}
	return p.dport == c.ports[0] || p.dport == c.ports[1] ||
		m.admitted[instance{sid.Suffix(sid.Low(c.local)), p.proto, p.dport}] || m.answersFrom(c, p.dport)
}

// answered: something came for a flow that nobody has answered yet.
func (m *Machine) answered(now time.Time, p *packet, c *entry) {
	tcp := p.proto == sid.TCP
	switch {
	case tcp && p.flags&rst != 0:
		m.refusedBy(p, c.Conn)
	case tcp && (!p.isSYNACK() || p.ack != c.isn+1):
		m.drop("drop_connecting")
	case !m.isPeer(p.src):
		m.drop("drop_bad_source")
	case c.policy.Datagrams == Unbound && p.proto == sid.UDP:
		m.deliver(now, p, c)
	case p.piece == laterPiece:
		m.drop("drop_connecting")
	case c.Conn.state != Connecting:
		m.notThePeer(p) // another attempt of the flow was answered
	default:
		m.bind(p, c)
		m.deliver(now, p, c)
	}
}

// bind makes the sender the peer, and the attempt that it answered the flow's own.
func (m *Machine) bind(p *packet, c *entry) {
	c.peer, c.Conn.peer, c.Conn.ID = p.src, p.src, c.id
	if c.retried {
		if c.slot >= 0 { // the attempt left by an uplink that is known
			c.Conn.slot = c.slot
		}
		if m.told {
			m.answers = append(m.answers, slices.Clone(p.b))
		} else {
			p.note = "daemon_away"
		}
	}
	c.state = Bound
	c.become(Bound)
	c.all(Connecting, Lost)
}

// refusedBy: an RST to a SYN is a refusal like code 4.
func (m *Machine) refusedBy(p *packet, c *Conn) {
	if sid.Low(p.src) != sid.Low(c.remote) || !m.inAS(p.src) {
		m.drop("drop_bad_source")
		return
	}
	p.rewrite(c.remote, c.local)
	m.tell("held", p.b, Pass)
}

// notThePeer takes what comes from elsewhere. A second instance's SYN-ACK must not leave a half-open socket there.
func (m *Machine) notThePeer(p *packet) {
	if p.isSYNACK() {
		m.reset(p, "drop_second_answer")
	} else {
		m.drop("drop_bad_source")
	}
}

func (m *Machine) deliver(now time.Time, p *packet, c *entry) {
	c.seen, c.heard = now, now
	if c.state == Bound && c.peer == p.src && p.piece != laterPiece {
		m.noteAnswer(c.Conn, p.sport)
	}
	if p.proto == sid.TCP {
		c.finIn = c.finIn || p.flags&fin != 0
		c.rst = c.rst || p.flags&rst != 0
		if c.state == HalfOpen && p.flags&(syn|rst) == 0 {
			c.spoken()
		}
	}
	p.rewrite(c.remote, c.local)
	m.out = append(m.out, Output{Verdict: Pass, Reason: p.note, Data: p.b})
}

// toService: the low half is a suffix, the packet is a flow's first.
func (m *Machine) toService(p *packet) {
	s := m.services[sid.Suffix(sid.Low(p.dst))]
	src, ok := p.src, m.isPeer(p.src)
	if !ok && p.proto == sid.UDP {
		src, ok = m.restore(p.src)
	}
	switch {
	case !p.isSYN() && p.proto != sid.UDP && !p.isEcho(echoRequest) && p.piece != laterPiece:
		m.drop("drop_not_admitted")
	case !ok:
		m.drop("drop_bad_source")
	case s != nil && (s.live > 0 || p.label().Retry() >= 3) && p.proto == sid.UDP && p.dport == sid.Port:
		m.message(p) // an unresolved RSYN
	case s != nil && s.allows != nil && !s.allows(sid.LocatorOf(p.src)) && p.piece == laterPiece:
		m.drop("forbidden")
	case s != nil && s.allows != nil && !s.allows(sid.LocatorOf(p.src)):
		m.refuse(p, sid.LocatorOf(p.dst).Host(), 1, "forbidden")
	case s != nil && m.mayEnter(p, s):
		p.rewrite(src, s.upper.Addr(sid.Low(p.dst)))
		m.pass(p.b)
	case p.piece == laterPiece:
		m.drop("drop_not_admitted")
	case s != nil && p.label().Retry() < sid.MaxRetry:
		m.bounce(p, s)
	default:
		m.refuse(p, sid.LocatorOf(p.dst).Host(), 4, "refused")
	}
}

// mayEnter: only what is registered here gets in; a wildcard listener answers to no name.
func (m *Machine) mayEnter(p *packet, s *service) bool {
	if p.piece == laterPiece || p.isEcho(echoRequest) {
		return s.live > 0
	}
	return m.admitted[instance{sid.Suffix(sid.Low(p.dst)), p.proto, p.dport}]
}

// restore: a source left unset goes by its service's name.
func (m *Machine) restore(src netip.Addr) (netip.Addr, bool) {
	s := m.services[sid.Suffix(sid.Low(src))]
	if s == nil || !m.inAS(src) {
		return src, false
	}
	return s.upper.Addr(sid.Low(src)), true
}

// toSelf: the host's own address; only the message port is ours.
func (m *Machine) toSelf(p *packet) {
	if p.proto == sid.UDP && p.transport() && p.dport == sid.Port {
		m.asked(p)
		return
	}
	m.pass(p.b)
}
