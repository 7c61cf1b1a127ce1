package flow

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
)

const (
	labelMask = 0x000fffff
	dscpMask  = 0x0fc00000
)

// fromHost handles what local sockets send. No service or identity address leaves as a source.
func (m *Machine) fromHost(now time.Time, p *packet, in Packet) {
	ours := m.isService(p.src) || m.isIdentity(p.src)
	switch {
	case !ours && !m.isService(p.dst) && !m.isPeer(p.dst), !ours && in.Forwarded:
		m.pass(p.b)
		return
	case !p.transport():
		m.drop("drop_malformed")
		return
	case !m.isService(p.dst) && !m.isService(p.src) && !p.isError():
		m.fromSelf(p)
		return
	}
	up, ok := m.uplinks[in.Uplink]
	switch {
	case !ok || up.Locator == 0:
		m.drop("drop_no_uplink")
	case p.piece == laterPiece:
		m.laterPiece(p)
	case p.isError() && ours:
		m.errorOut(p, up)
	case m.isService(p.dst):
		m.fromClient(now, p, up)
	case m.isService(p.src):
		m.fromServer(now, p, up)
	default:
		m.pass(p.b)
	}
}

// fromSelf: an address of the host itself as source, a flow's address as destination.
func (m *Machine) fromSelf(p *packet) {
	identity := m.isIdentity(p.src)
	speaks := p.proto == sid.TCP || p.proto == sid.UDP || p.isEcho(echoRequest)
	switch {
	case identity && (!m.isPeer(p.dst) || !speaks):
		m.drop("drop_leak")
	case !speaks, p.proto == sid.UDP && p.dport == sid.Port && !identity:
		m.pass(p.b)
	default:
		m.dialled(p)
	}
}

// dialled: a program sends to an address that it once saw as a peer.
func (m *Machine) dialled(p *packet) {
	if p.isSYN() && m.told {
		m.out = append(m.out, Output{Tell, "drop_dialled_peer", refusal(p, p.dst, 3)})
		return
	}
	m.drop("drop_dialled_peer")
}

// fromClient: the destination is a service.
func (m *Machine) fromClient(now time.Time, p *packet, up Uplink) {
	if p.proto != sid.TCP && p.proto != sid.UDP && !p.isEcho(echoRequest) {
		m.drop("drop_leak")
		return
	}
	t := clientTuple(p)
	c := m.byTuple[t]
	if c != nil && p.isSYN() && c.isn != p.seq {
		m.end(c) // the port has come back: another connection
		c = nil
	}
	if c != nil && p.proto != sid.TCP && c.orphaned(now, p.socket) {
		m.end(c)
		c = nil
	}
	policy := m.policies[p.dst]
	switch {
	case c != nil:
		m.known(now, p, c, up)
	case p.proto == sid.TCP && !p.isSYN():
		m.drop("drop_no_flow_out")
	case policy.Datagrams == Unset && p.proto == sid.UDP && m.isService(p.src):
		m.stateless(p, up)
	default:
		m.known(now, p, m.begin(now, p, t, Conn{Role: Client, state: Connecting, policy: policy}), up)
	}
}

// fromServer: the source is a service, the destination the frozen address of a peer.
func (m *Machine) fromServer(now time.Time, p *packet, up Uplink) {
	if p.proto != sid.TCP && p.proto != sid.UDP && !p.isEcho(echoReply) {
		m.drop("drop_leak")
		return
	}
	t := serverTuple(p)
	c := m.byTuple[t]
	switch {
	case c != nil:
		c.ports[1] = p.sport
		m.known(now, p, c, up)
	case m.isPeer(p.dst):
		m.newServer(now, p, t, up)
	case p.proto == sid.UDP && m.inAS(p.dst) && sid.Low(p.dst) != sid.HostSuffix:
		m.stateless(p, up)
	default:
		m.drop("drop_leak")
	}
}

func (m *Machine) newServer(now time.Time, p *packet, t tuple, up Uplink) {
	c := Conn{Role: Server, state: Bound, policy: m.policies[p.src]}
	if p.proto == sid.TCP {
		switch {
		case p.isSYN():
			m.dialled(p)
			return
		case p.flags&rst != 0:
			m.stateless(p, up) // a connecting client is refused
			return
		case !p.isSYNACK():
			m.drop("drop_no_flow_out")
			return
		}
		c.state = HalfOpen
	}
	m.known(now, p, m.begin(now, p, t, c), up)
}

// known sends a packet of a flow.
func (m *Machine) known(now time.Time, p *packet, c *Conn, up Uplink) {
	c.seen, c.spoke = now, now
	if p.proto == sid.TCP && p.flags&fin != 0 && p.dying && c.Role == Server {
		p.cutOff()
	}
	if p.proto == sid.TCP {
		c.finOut = c.finOut || p.flags&fin != 0
		c.rst = c.rst || p.flags&rst != 0
	}
	m.leave(p, up.MTU, up.Locator.Addr(uint64(c.ID)), c.peer, c.policy.DSCP)
}

// cutOff: the kernel ends the connection of a process that died as if all had been said. An RST takes the place
// of the FIN; one that shares its segment with data is taken away and comes again when the data has arrived.
func (p *packet) cutOff() {
	at := p.l4 + 12
	p.flags &^= fin | psh
	if len(p.b) <= p.l4+int(p.b[at]>>4)*4 {
		p.flags |= rst
	}
	p.note = "cut_off"
	p.replace(at, []byte{p.b[at], p.flags}, p.l4+16)
}

// stateless leaves as the instance itself: its suffix stands for it.
func (m *Machine) stateless(p *packet, up Uplink) {
	m.leave(p, up.MTU, up.Locator.Addr(sid.Low(p.src)), p.dst, 0)
}

// leave writes the wire addresses. An unresolved packet's flow label is its retry count: 0 here.
func (m *Machine) leave(p *packet, mtu uint16, src, dst netip.Addr, dscp uint8) {
	word := p.word
	if m.isService(dst) {
		word &^= labelMask
	}
	if dscp != 0 {
		word = word&^dscpMask | uint32(dscp)<<22
	}
	if p.piece == firstPiece {
		m.fragments[fragment{p.src, p.dst, p.id}] = rewritten{src, dst, word}
	}
	if p.proto == sid.TCP && p.flags&syn != 0 && mtu >= 1280 {
		p.clampMSS(mtu - ip6Len - tcpLen)
	}
	p.setWord(word)
	p.rewrite(src, dst)
	m.out = append(m.out, Output{Verdict: Pass, Reason: p.note, Data: p.b})
}

func (m *Machine) laterPiece(p *packet) {
	r, ok := m.fragments[fragment{p.src, p.dst, p.id}]
	if !ok {
		m.drop("drop_fragment")
		return
	}
	p.setWord(r.word)
	p.rewrite(r.src, r.dst)
	m.pass(p.b)
}

// clampMSS lowers the MSS of a SYN or SYN-ACK to limit.
func (p *packet) clampMSS(limit uint16) {
	end := min(p.l4+int(p.b[p.l4+12]>>4)*4, len(p.b))
	for off := p.l4 + tcpLen; off+4 <= end && p.b[off] != 0; {
		switch kind := p.b[off]; {
		case kind == 1:
			off++
			continue
		case kind == 2 && binary.BigEndian.Uint16(p.b[off+2:]) > limit:
			p.setMSS(off+2, limit)
			return
		case kind == 2 || p.b[off+1] == 0:
			return
		}
		off += int(p.b[off+1])
	}
}

// setMSS writes two bytes; where they straddle two words of the checksum they count the other way round.
func (p *packet) setMSS(off int, mss uint16) {
	from, to := p.b[off:off+2], binary.BigEndian.AppendUint16(nil, mss)
	if off%2 == 1 {
		p.adjust([]byte{from[1], from[0]}, []byte{to[1], to[0]}, p.l4+16)
	} else {
		p.adjust(from, to, p.l4+16)
	}
	copy(from, to)
}
