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
	identity := m.isIdentity(p.src)
	ours := m.isService(p.src) || identity
	switch {
	case !ours && !in.Forwarded && m.inAS(p.src) && !m.own(sid.LocatorOf(p.src)):
		m.drop("drop_foreign_source")
	case !ours && (in.Forwarded || !m.isService(p.dst) && !m.isPeer(p.dst)):
		m.pass(p.b)
	case !p.transport():
		m.drop("drop_malformed")
	case !ours && m.fromSelf(p, in.Uplink):
	case ours && p.isError():
		m.errorOut(p, in.Uplink)
	case identity && !m.isService(p.dst):
		m.fromIdentity(p)
	case p.piece == laterPiece:
		m.laterPiece(p, in.Uplink)
	case m.isService(p.dst):
		m.fromClient(now, p, in.Uplink)
	default:
		m.fromServer(now, p, in.Uplink)
	}
}

// own: the locator is or was this host's.
func (m *Machine) own(l sid.Locator) bool { return m.locators[l] || m.of(l) >= 0 }

// fromSelf: the source is neither a service nor an identity. It reports false for a client that chose its own.
func (m *Machine) fromSelf(p *packet, here int) bool {
	service, peer := m.isService(p.dst), m.isPeer(p.src)
	message := p.proto == sid.UDP && p.dport == sid.Port && (!service || p.sport == sid.Port && m.inAS(p.src))
	switch {
	case message:
		m.messageOut(p, here)
	case peer && m.bySocket[sid.SocketID(sid.Low(p.src))] != nil:
		m.pass(p.b) // written on another uplink
	case service && peer:
		m.drop("drop_leak")
	case service:
		return false
	case p.proto == sid.TCP || p.proto == sid.UDP || p.isEcho(echoRequest):
		m.dialled(p)
	default:
		m.pass(p.b)
	}
	return true
}

// messageOut sends what a host stack made by the uplink of its source.
func (m *Machine) messageOut(p *packet, here int) {
	s := m.of(sid.LocatorOf(p.src))
	m.by(s, here, "", p.b)
}

// fromIdentity: a client's socket, and no service as destination.
func (m *Machine) fromIdentity(p *packet) {
	if m.isPeer(p.dst) && (p.proto == sid.TCP || p.proto == sid.UDP || p.isEcho(echoRequest)) {
		m.dialled(p)
		return
	}
	m.drop("drop_leak")
}

// dialled: a program sends to an address that it once saw as a peer.
func (m *Machine) dialled(p *packet) {
	if p.isSYN() && m.told {
		m.out = append(m.out, Output{Verdict: Tell, Reason: "drop_dialled_peer", Data: refusal(p, p.dst, 3)})
		return
	}
	m.drop("drop_dialled_peer")
}

// fromClient: the destination is a service.
func (m *Machine) fromClient(now time.Time, p *packet, here int) {
	if p.proto != sid.TCP && p.proto != sid.UDP && !p.isEcho(echoRequest) {
		m.drop("drop_leak")
		return
	}
	t := clientTuple(p)
	c := m.clientFlow(t)
	if c != nil && p.isSYN() && c.isn != p.seq {
		m.end(c) // the port has come back: another connection
		c = nil
	}
	for range 2 {
		if c != nil && p.proto != sid.TCP && c.orphaned(now, p.socket) {
			m.end(c)
			c = m.clientFlow(t) // another one of the socket that is gone, perhaps
		}
	}
	policy, hand := m.policies[p.dst], m.at(here)
	switch {
	case c != nil:
		m.known(now, p, c, here)
	case p.proto == sid.TCP && !p.isSYN():
		m.drop("drop_no_flow_out")
	case hand < 0:
		m.drop("drop_no_uplink")
	case policy.Datagrams == Unset && p.proto == sid.UDP && m.isService(p.src):
		m.stateless(p, hand)
	default:
		m.known(now, p, m.begin(now, p, t, Conn{Role: Client, state: Connecting, policy: policy, slot: hand}), here)
	}
}

// fromServer: the source is a service, the destination the frozen address of a peer.
func (m *Machine) fromServer(now time.Time, p *packet, here int) {
	if p.proto != sid.TCP && p.proto != sid.UDP && !p.isEcho(echoReply) {
		m.drop("drop_leak")
		return
	}
	t := serverTuple(p)
	c, hand := m.byTuple[t], m.at(here)
	switch {
	case c != nil:
		m.noteOwn(c, p.sport)
		m.known(now, p, c, here)
	case m.isPeer(p.dst) && p.isSYN():
		m.dialled(p)
	case m.isPeer(p.dst):
		m.newServer(now, p, t, here)
	case p.proto != sid.UDP || !m.inAS(p.dst) || sid.Low(p.dst) == sid.HostSuffix:
		m.drop("drop_leak")
	case hand < 0:
		m.drop("drop_no_uplink")
	default:
		m.stateless(p, hand)
	}
}

func (m *Machine) newServer(now time.Time, p *packet, t tuple, here int) {
	c := Conn{Role: Server, state: Bound, policy: m.policies[p.src], slot: m.at(here)}
	switch {
	case c.slot < 0:
		m.drop("drop_no_uplink")
		return
	case p.proto != sid.TCP:
	case p.flags&rst != 0:
		m.stateless(p, c.slot) // a connecting client is refused
		return
	case !p.isSYNACK():
		m.drop("drop_no_flow_out")
		return
	default:
		c.state = HalfOpen
	}
	m.known(now, p, m.begin(now, p, t, c), here)
}

// known sends a packet of a flow by its own uplink. Where that is gone it leaves by the one at hand, with the old
// locator, which is what the peer takes until it hears of the new one.
func (m *Machine) known(now time.Time, p *packet, c *Conn, here int) {
	if c.state == Blocked {
		m.out = append(m.out, Output{Verdict: Swallow, Reason: "drop_blocked"})
		return
	}
	by := c.slot
	if s := &m.slots[by]; s.uplink == 0 {
		if s.quiet && p.proto == sid.TCP && p.flags&rst == 0 {
			m.out = append(m.out, Output{Verdict: Swallow, Reason: "quiet"})
			return
		}
		by = m.at(here)
	}
	if by < 0 {
		m.drop("drop_no_uplink")
		return
	}
	c.seen, c.spoke = now, now
	if p.proto == sid.TCP && p.flags&fin != 0 && p.dying && c.Role == Server {
		p.cutOff()
	}
	if p.proto == sid.TCP {
		c.finOut = c.finOut || p.flags&fin != 0
		c.rst = c.rst || p.flags&rst != 0
	}
	p.again = c.sentAgain(p)
	m.leave(p, m.slots[by].mtu, m.slots[c.slot].locator.Addr(uint64(c.ID)), c.peer, c.policy.DSCP, c.slot)
	m.by(by, here, p.note, p.b)
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
func (m *Machine) stateless(p *packet, hand int) {
	s := &m.slots[hand]
	m.leave(p, s.mtu, s.locator.Addr(sid.Low(p.src)), p.dst, 0, -1)
	m.pass(p.b)
}

// sentAgain is the label of a SYN: of those that the kernel sends again each other one goes to the next instance.
func (c *Conn) sentAgain(p *packet) sid.Label {
	if c.state != Connecting || !p.isSYN() {
		return 0
	}
	c.syns++
	if again := c.syns - 1; again%2 == 1 {
		return sid.NewLabel(0, min(again/2+1, sid.MaxRetry-1))
	}
	return 0
}

// leave writes the wire addresses. An unresolved packet's flow label says who returned it: nobody here.
func (m *Machine) leave(p *packet, mtu uint16, src, dst netip.Addr, dscp uint8, slot int) {
	word := p.word
	if m.isService(dst) {
		word = word&^labelMask | uint32(p.again)
	}
	if dscp != 0 {
		word = word&^dscpMask | uint32(dscp)<<22
	}
	if p.piece == firstPiece {
		m.fragments[fragment{p.src, p.dst, p.id}] = rewritten{src, dst, word, slot}
	}
	if p.proto == sid.TCP && p.flags&syn != 0 && mtu >= 1280 {
		p.clampMSS(mtu - ip6Len - tcpLen)
	}
	p.setWord(word)
	p.rewrite(src, dst)
}

func (m *Machine) laterPiece(p *packet, here int) {
	r, ok := m.fragments[fragment{p.src, p.dst, p.id}]
	if !ok {
		m.drop("drop_fragment")
		return
	}
	p.setWord(r.word)
	p.rewrite(r.src, r.dst)
	m.by(r.slot, here, "", p.b)
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
