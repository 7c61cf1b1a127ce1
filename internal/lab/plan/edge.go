package plan

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/lab/file"
)

func addr4(p netip.Prefix, low uint32) netip.Addr {
	b := p.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+low)
	return netip.AddrFrom4(b)
}

// addEdge makes a link that leaves the network of IP routers a subnet, the n-th: the router is number 1 there, a
// host number 2. It returns how many subnets that were.
func (c *Link) addEdge(n int) int {
	for i, node := range c.Nodes {
		far := c.Nodes[1-i]
		if !node.EdgeTo(far.Node) {
			continue
		}
		if len(far.Addresses) > 0 {
			c.Ports[i].Addrs = far.Addresses
			return 0
		}
		for side, port := range []*Port{c.Ports[i], c.Ports[1-i]} {
			six := file.EdgePrefix.Addr().As16()
			binary.BigEndian.PutUint16(six[6:], uint16(n))
			six[15] = byte(side + 1)
			port.Addrs = []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom16(six), 64),
				netip.PrefixFrom(addr4(file.EdgePrefix4, uint32(4*n+side+1)), 30),
			}
		}
		return 1
	}
	return 0
}

// hostMetric is that of the default route by a host's first uplink; those by others count up.
const hostMetric = 1024

// defaultRoutes are those of a host by IP routers, the first uplink before the others.
func (n *Node) defaultRoutes() (routes []Route) {
	for i, p := range n.Ports {
		for _, a := range p.Peer.Addrs {
			all := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
			if a.Addr().Is4() {
				all = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			}
			routes = append(routes, Route{Prefix: all, Via: a.Addr(), Dev: p.Dev, Metric: hostMetric + i})
		}
	}
	return routes
}

// plainRoutes are those of an IP router in the kernel.
func (p *Plan) plainRoutes(n *Node) []Route {
	if !p.File.Bare {
		return p.staticRoutes(n)
	}
	return p.ipRoutes(n)
}

// ipRoutes are what an IP router in the kernel needs in a network of plain IP: shortest ways, by the number of
// links, to all that routers have or announce.
func (p *Plan) ipRoutes(from *Node) (routes []Route) {
	found := p.reach(from, func(n *Node) bool { return !n.Kind.Ends() })
	for _, n := range p.Nodes {
		h, ok := found[n]
		if !ok || n == from || !n.Kind.IP() {
			continue
		}
		for _, prefix := range n.Owns() {
			routes = append(routes, p.route(prefix, h))
		}
	}
	return routes
}

// Owns are the destinations that an IP router has or announces: its own addresses, its hosts' subnets, and what
// the file says.
func (n *Node) Owns() (all []netip.Prefix) {
	for _, a := range []netip.Addr{n.Own, n.Own4} {
		if a.IsValid() {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for _, p := range n.Ports {
		for _, a := range p.Addrs {
			all = append(all, a.Masked())
		}
	}
	return append(all, n.Announce...)
}

// Known are the addresses by which a node of a network of plain IP is known: those of a router, or of a host's
// first uplink.
func (n *Node) Known() (all []netip.Addr) {
	switch {
	case n.Own.IsValid():
		return []netip.Addr{n.Own, n.Own4}
	case n.Bare && len(n.Ports) > 0:
		for _, a := range n.Ports[0].Addrs {
			all = append(all, a.Addr())
		}
	}
	return all
}
