package switchd

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A pace keeps the probes of all switches together below a number a second.
type pace struct {
	most  int
	hosts atomic.Int64
}

// every is the interval for a switch whose hosts are to be probed each basic one.
func (p *pace) every(basic time.Duration) time.Duration {
	return max(basic, time.Duration(p.hosts.Load())*time.Second/time.Duration(p.most))
}

// watch sends probes to the switch's hosts and counts those that nobody answers, docs/protocol.md §5.3. Before
// it counts it asks the switch anything: what hosts answered before is there by the time of the answer, so
// neither our delays nor those of the way to the switch accuse anybody.
func (m *member) watch() {
	next := time.Now()
	for m.ctx.Err() == nil {
		var basic time.Duration
		if !m.call(func() { basic = time.Duration(max(1, m.joinedAs.everyMs)) * time.Millisecond }) {
			return
		}
		every := m.d.pace.every(basic)
		next = next.Add(every)
		if now := time.Now(); next.Before(now) {
			next = now // rounds that did not happen are not made up for
		}
		select {
		case <-time.After(time.Until(next)):
		case <-m.ctx.Done():
			return
		}
		if _, err := m.conn.Ask(m.ctx, ofp.GetConfigRequest{}); err == nil {
			m.call(func() { m.round(every) })
		}
	}
}

// round takes the answers that are there, draws conclusions and sends the next probes.
func (m *member) round(every time.Duration) {
	if m.tables == nil || m.probes.Len() == 0 {
		return
	}
	for waits := true; waits; {
		select {
		case p, ok := <-m.conn.PacketIns():
			if waits = ok; ok {
				m.packet(p)
			}
		default:
			waits = false
		}
	}
	m.probes.SetLimits(m.joinedAs.limits(uint32(every / time.Millisecond)))
	m.hostChanges(m.probes.Turn(m.sendProbe))
}

// sendProbe has the switch send one by the way of all packets to the host.
func (m *member) sendProbe(l sid.Locator, nonce uint64) {
	probe := wire.Probe{Header: wire.Header{Nonce: nonce}}.Append(nil)
	frame := datagram(m.mac, m.locator.Host(), l.Host(), probe)
	m.packetOut(ofp.PortController, []ofp.Action{ofp.Output{Port: ofp.PortTable}}, frame)
}

// ownPacket takes a datagram to the router's own address.
func (m *member) ownPacket(frame []byte) {
	from, body, ok := readDatagram(frame)
	if !ok || sid.Low(from) != sid.HostSuffix {
		return
	}
	t, h, err := wire.ParseHeader(body)
	if err == nil && t == wire.TypeProbeAck {
		m.hostChanges(m.probes.Answered(sid.LocatorOf(from), h.Nonce))
	}
}

// mostHops tells that a message comes from no farther than it says.
const mostHops = 255

// datagram is a frame with a message of the protocol; its hardware addresses are for the switch to fill in.
func datagram(from ofp.MAC, src, dst netip.Addr, body []byte) []byte {
	b := ethernet(from, from) // to the router: its tables take what is for it
	return header.AppendDatagram(b, netip.AddrPortFrom(src, sid.Port), netip.AddrPortFrom(dst, sid.Port), mostHops, body)
}

// ethernet is the beginning of a frame of IPv6.
func ethernet(to, from ofp.MAC) []byte {
	b := append(append(make([]byte, 0, header.EthernetLen), to[:]...), from[:]...)
	return binary.BigEndian.AppendUint16(b, header.EtherIPv6)
}

// readDatagram finds a message of the protocol in a frame.
func readDatagram(b []byte) (src netip.Addr, body []byte, ok bool) {
	ip, ok := header.InFrame(b)
	if !ok {
		return src, nil, false
	}
	from, to, body, ok := header.Datagram(ip)
	return from.Addr(), body, ok && to.Port() == sid.Port
}
