package flow

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/sid"
)

// Pings are answered under a cookie, docs/protocol.md §3.3: nothing need be kept of them. This machine keeps them all the
// same, and knows those that it has forgotten.

const (
	tagBits = 12
	macBits = 51
)

// halves are those of an address, read as the program reads them.
func halves(a netip.Addr) (upper, lower uint64) {
	b := a.As16()
	return binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[8:])
}

// tagOf is where a service stands among the tags.
func tagOf(service netip.Addr) uint64 {
	upper, lower := halves(service)
	return (lower ^ upper) * 0x9e3779b97f4a7c15 >> (64 - tagBits)
}

// echoID is the socketID for a client's pings with the identifier.
func (m *Machine) echoID(tag uint64, client netip.Addr, id uint16) sid.SocketID {
	upper, lower := halves(client)
	port := uint64(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, id)))
	return sid.SocketID(1<<63 | tag<<macBits | sipHash(m.cfg.Key, upper, lower, 0, tag<<32|port)>>(64-macBits))
}

// newID is a fresh socketID, or that of a service's answers to pings. The first service of a tag has it.
func (m *Machine) newID(r Role, t tuple) sid.SocketID {
	if r != Server || t.proto != sid.ICMPv6 {
		return m.cfg.NewID()
	}
	tag := tagOf(t.local)
	if !m.tags[tag].IsValid() {
		m.tags[tag] = t.local
	}
	if m.tags[tag] != t.local {
		return m.cfg.NewID()
	}
	return m.echoID(tag, t.remote, t.rport)
}

// pinged is the service that a ping without a flow is for.
func (m *Machine) pinged(p *packet) netip.Addr {
	id := sid.Low(p.dst)
	tag := id >> macBits & (1<<tagBits - 1)
	if !p.isEcho(echoRequest) || !m.isPeer(p.src) || m.echoID(tag, p.src, p.sport) != sid.SocketID(id) {
		return netip.Addr{}
	}
	return m.tags[tag]
}

func (m *Machine) ping(now time.Time, p *packet, to netip.Addr) {
	s := m.services[sid.Suffix(sid.Low(to))]
	if s == nil || s.live == 0 || s.upper != sid.LocatorOf(to) || s.allows != nil && !s.allows(sid.LocatorOf(p.src)) {
		m.unknown(now, p)
		return
	}
	p.rewrite(p.src, to)
	m.pass(p.b)
}
