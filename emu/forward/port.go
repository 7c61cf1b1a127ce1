package forward

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/emu"
)

// A port is what the forwarder knows of one.
type port struct {
	*emu.Port
	mac       [6]byte
	linkLocal netip.Addr
	addresses []netip.Prefix
	four, six netip.Addr // the first address of each family
	mtu       uint16
	lan       bool
	up        bool
}

// portOf makes a port of its configuration.
func (f *Forwarder) portOf(r *emu.Router, p *emu.Port) port {
	var c PortConfig
	if p.Number < len(f.config.Ports) {
		c = f.config.Ports[p.Number]
	}
	one := port{Port: p, mac: c.MAC, linkLocal: c.LinkLocal, addresses: c.Addresses, mtu: uint16(c.MTU), lan: c.LAN, up: p.Up()}
	edge, outside := p.Far().(*emu.Edge)
	one.lan = one.lan || outside && edge.End().Taken
	if one.mac == [6]byte{} {
		one.mac = macOf(r, p)
	}
	if !one.linkLocal.IsValid() {
		one.linkLocal = linkLocalOf(one.mac)
	}
	if one.mtu == 0 {
		one.mtu = DefaultMTU
		if outside && edge.End().MTU != 0 {
			one.mtu = uint16(edge.End().MTU)
		}
	}
	for _, a := range c.Addresses {
		if a.Addr().Is4() && !one.four.IsValid() {
			one.four = a.Addr()
		} else if a.Addr().Is6() && !one.six.IsValid() {
			one.six = a.Addr()
		}
	}
	return one
}

// macOf is a port's Ethernet address where none is given: with a namespace its side there, at an edge the edge's.
func macOf(r *emu.Router, p *emu.Port) [6]byte {
	if e := p.Local(); e != nil {
		return e.Peer()
	}
	if e, ok := p.Far().(*emu.Edge); ok {
		return e.Address()
	}
	mac := [6]byte{0x02, 0x5d}
	binary.BigEndian.PutUint32(mac[2:], uint32(r.Number())<<12+uint32(p.Number))
	return mac
}

// linkLocalOf is the link-local address of an Ethernet address (RFC 4291, appendix A).
func linkLocalOf(mac [6]byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]})
}

// LinkChanged takes note that a port went down or came up. Groups use it no more, or again.
func (f *Forwarder) LinkChanged(r *emu.Router, p *emu.Port) {
	if f.router != r {
		return // all is looked at when the first packet comes
	}
	if one := &f.ports[p.Number]; one.up != p.Up() {
		one.up = p.Up()
		f.connect()
	}
}

// connect makes all adjacencies what their ports are.
func (f *Forwarder) connect() {
	for n, h := range f.places {
		f.all[h] = f.reach(n, uint16(h))
	}
	for i := range f.groups {
		f.look(&f.groups[i])
	}
}

// reach is the adjacency, with this number, of a next hop.
func (f *Forwarder) reach(n NextHop, number uint16) adjacency {
	if n.Port >= len(f.ports) || !f.ports[n.Port].up {
		return adjacency{kind: toDown}
	}
	p := &f.ports[n.Port]
	if p.lan {
		return adjacency{kind: toLAN, port: uint16(n.Port), more: number}
	}
	return adjacency{kind: toWire, port: uint16(n.Port), fits: p.mtu}
}
