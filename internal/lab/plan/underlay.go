package plan

import (
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A Tunnel is what a link that is a tunnel has at its two ends.
type Tunnel struct {
	VNI   int
	Outer [2]netip.Addr // of the ends in the underlay
}

// addUnder gives the ends of the n-th link of the underlay their addresses.
func (c *Link) addUnder(n int) {
	six, four := file.UnderPrefix.Addr().As16(), file.UnderPrefix4.Addr().As4()
	six[7], four[2] = byte(n), byte(n)
	for i, p := range c.Ports {
		six[15], four[3] = byte(i+1), byte(i+1)
		if c.Over != file.OverIPv4 {
			p.Under = append(p.Under, netip.PrefixFrom(netip.AddrFrom16(six), 64))
		}
		if c.Over != file.OverIPv6 {
			p.Under = append(p.Under, netip.PrefixFrom(netip.AddrFrom4(four), 24))
		}
	}
}

// under is the port's address of one family in the underlay, if it has one.
func (p *Port) under(four bool) (netip.Addr, bool) {
	for _, a := range p.Under {
		if a.Addr().Is4() == four {
			return a.Addr(), true
		}
	}
	return netip.Addr{}, false
}

// outer is the port's address in the underlay.
func (p *Port) outer(over string) netip.Addr {
	a, _ := p.under(over == file.OverIPv4)
	return a
}

// crossing are the ports by which a way leaves each node from one to another, through nodes of the underlay
// alone; none if there is no way.
func (p *Plan) crossing(from, to *Node) (way []*Port) {
	at := from
	for _, l := range p.File.Crossing(p.at, from.Name, to.Name) {
		port := at.Ports[slices.IndexFunc(at.Ports, func(p *Port) bool { return p.Link.Link == l })]
		way = append(way, port)
		at = port.Far
	}
	return way
}

// underRoutes are a node's routes to the subnets that it is not on.
func (p *Plan) underRoutes(n *Node) (routes []Route) {
	for _, c := range p.Cable {
		if c.Ports[0].Under == nil || c.Nodes[0] == n || c.Nodes[1] == n {
			continue
		}
		way := p.crossing(n, c.Nodes[0])
		if other := p.crossing(n, c.Nodes[1]); way == nil || other != nil && len(other) < len(way) {
			way = other
		}
		if way == nil {
			continue
		}
		for _, subnet := range c.Ports[0].Under {
			if via, ok := way[0].Peer.under(subnet.Addr().Is4()); ok {
				routes = append(routes, Route{Prefix: subnet.Masked(), Via: via, Dev: way[0].Dev})
			}
		}
	}
	return routes
}

// addTunnel works out a tunnel. The file was checked: there is a way, unless its plane was changed since.
func (p *Plan) addTunnel(c *Link, vni int) {
	fitted, err := p.File.Fitted(p.at, c.Link)
	if err != nil {
		return
	}
	c.Link = fitted
	there, back := p.crossing(c.Nodes[0], c.Nodes[1]), p.crossing(c.Nodes[1], c.Nodes[0])
	c.Tunnel = &Tunnel{VNI: vni, Outer: [2]netip.Addr{there[0].outer(c.Over), back[0].outer(c.Over)}}
}

// Offers are the addresses at which a router takes tunnels.
func (n *Node) Offers() (list []netip.Addr) {
	for _, p := range n.Ports {
		for _, a := range p.Under {
			list = append(list, a.Addr())
		}
	}
	return list
}
