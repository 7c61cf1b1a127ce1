package routerd

import (
	"net"
	"net/netip"

	"golang.org/x/net/ipv6"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/sid"
)

// listed takes up who is in the network.
func (d *daemon) listed(m *apiv1.RouterKeys) {
	news := d.keys.Take(m)
	d.neighbours.Listed()
	if !news {
		return
	}
	for _, p := range d.ports { // who has another key is asked to prove himself, and who is new hears of us
		d.greet(p.name)
		d.proveAll(p)
	}
	d.tellNeighbours()
}

// proveAll sends LINK to each neighbour at a port.
func (d *daemon) proveAll(p *port) {
	if !p.up {
		return
	}
	for _, key := range d.neighbours.Due(p.name) {
		if key.PeerPort != "" {
			d.prove(p, key, netip.IPv6LinkLocalAllNodes())
			continue
		}
		for _, a := range d.farEnds(p.name) {
			d.prove(p, key, a)
		}
	}
}

// prove sends LINK to one neighbour; on a link to all, since that takes no neighbour discovery. Its source address is part
// of what it proves: it is where packets for this router are to be sent.
func (d *daemon) prove(p *port, key agent.NeighbourKey, to netip.Addr) {
	cm := &ipv6.ControlMessage{}
	source := p.linkLocal()
	if to.IsLinkLocalUnicast() || to.IsMulticast() {
		to, cm.IfIndex = netip.IPv6LinkLocalAllNodes(), p.ifindex
	} else if d.locator == 0 {
		return
	} else {
		source = d.locator.Host()
	}
	if !source.IsValid() {
		return // the port is coming up; the next is due in a second
	}
	cm.Src = source.AsSlice()
	b := d.neighbours.Link(key, source, d.locator).Append(nil)
	if _, err := d.links.WriteTo(b, cm, &net.UDPAddr{IP: to.AsSlice(), Port: sid.Port}); err != nil {
		d.log.Debug("LINK not sent", "port", p.name, "to", to, "error", err)
	}
}

// linkLocal is the port's own address; invalid while there is none.
func (p *port) linkLocal() netip.Addr {
	i, err := net.InterfaceByIndex(p.ifindex)
	if err != nil {
		return netip.Addr{}
	}
	all, err := i.Addrs()
	if err != nil {
		return netip.Addr{}
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil && n.IP.IsLinkLocalUnicast() {
			addr, _ := netip.AddrFromSlice(n.IP)
			return addr
		}
	}
	return netip.Addr{}
}
