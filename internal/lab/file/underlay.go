package file

import (
	"fmt"
	"net/netip"
	"slices"
)

// An underlay is a network of ordinary IP routers that know nothing of Scaffold and carry none of its packets
// themselves: each of its links is a subnet, of IPv6 and of IPv4, and tunnels between Scaffold's routers go
// through it.

// VXLAN is the one kind of tunnel.
const VXLAN = "vxlan"

// What tunnels go over.
const (
	OverIPv6 = "ipv6"
	OverIPv4 = "ipv4"
)

// maxUnder bounds the subnets of an underlay.
const maxUnder = 250

// UnderPrefix and UnderPrefix4 are what the subnets of underlays are taken from.
var (
	UnderPrefix  = netip.MustParsePrefix("fd5f:0:0:100::/56")
	UnderPrefix4 = netip.MustParsePrefix("10.94.0.0/16")
)

// overhead is what VXLAN puts around a packet: IP, UDP, VXLAN and Ethernet headers.
func overhead(over string) int {
	if over == OverIPv4 {
		return 20 + 8 + 8 + 14
	}
	return 40 + 8 + 8 + 14
}

// Under reports whether a link is the underlay's.
func (f *File) Under(l *Link) bool {
	for _, name := range l.Ends {
		if n := f.Node(name); n != nil && n.Kind == Underlay {
			return true
		}
	}
	return false
}

// Tunneled reports whether a host is on the underlay alone: its uplink is a tunnel.
func (f *File) Tunneled(n *Node) bool {
	links := f.linksBetween(n.Name, "")
	return n.Kind.IsHost() && len(links) > 0 && !slices.ContainsFunc(links, func(l *Link) bool { return !f.Under(l) })
}

// checkTunneled finds what a host on the underlay lacks.
func (c *checker) checkTunneled(n *Node) {
	if !slices.ContainsFunc(c.Nodes, func(n *Node) bool { return n.Tunnels }) {
		c.r.errorf(n.Line, "host %q is on the underlay, and no router offers it a tunnel; expected tunnels: true at a router that is linked to the underlay", n.Name)
	}
	for _, ctl := range c.Of(Controller) {
		if len(c.linksBetween(ctl.Name, "")) == 0 {
			c.r.errorf(n.Line, "host %q is on the underlay: the controller is unreachable; expected a link between %q and the underlay", n.Name, ctl.Name)
		}
	}
}

// checkOver finds families that are asked for where nobody asks.
func (c *checker) checkOver() {
	for _, l := range c.Links {
		if l.Over != "" && l.Tunnel == "" && !c.Under(l) {
			c.r.errorf(l.Line, "over: only a tunnel or a link of the underlay goes over something; expected tunnel: %s beside it", VXLAN)
		}
	}
	for _, n := range c.Nodes {
		if why := n.cannotOffer(); why != "" {
			c.r.errorf(n.Line, "%s", why)
		}
		switch {
		case n.Kind.IsHost() && n.Uplink != "" && !c.Tunneled(n):
			c.r.errorf(n.Line, "host %q has an uplink that is a tunnel, and a link to a router; expected links to nodes of kind underlay alone", n.Name)
		case n.Kind == Router && n.Tunnels && !slices.ContainsFunc(c.linksBetween(n.Name, ""), c.Under):
			c.r.errorf(n.Line, "router %q offers tunnels and has no link to the underlay; expected one to a node of kind underlay", n.Name)
		}
	}
}

// Crossing is the way from one node to another through nodes of the underlay alone, as the links of it; none if there is
// no way. at is what neighbours gives.
func (f *File) Crossing(at map[string][]*Link, from, to string) (way []*Link) {
	came := map[string]*Link{from: nil}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if n := f.Node(name); name != from && n.Kind != Underlay {
			continue
		}
		for _, l := range at[name] {
			far := l.far(name)
			if _, seen := came[far]; seen || !f.Under(l) {
				continue
			}
			came[far] = l
			queue = append(queue, far)
		}
	}
	for name := to; came[name] != nil; name = came[name].far(name) {
		way = append([]*Link{came[name]}, way...)
	}
	return way
}

// Fitted is a link that is a tunnel, with all that follows from the underlay below it: what it goes over and how large
// its packets are. at is what neighbours gives.
func (f *File) Fitted(at map[string][]*Link, l *Link) (*Link, error) {
	there, back := f.Crossing(at, l.Ends[0], l.Ends[1]), f.Crossing(at, l.Ends[1], l.Ends[0])
	if there == nil || back == nil {
		return nil, fmt.Errorf("tunnel between %q and %q: no way through nodes of kind underlay joins them", l.Ends[0], l.Ends[1])
	}
	carries := there[0].MTU
	for _, link := range append(there, back...) {
		carries = min(carries, link.MTU)
	}
	fixed := *l // the file stays as it was read
	if err := fixed.fit(carries, f.Node(l.Ends[0]).Kind == Switch || f.Node(l.Ends[1]).Kind == Switch); err != nil {
		return nil, err
	}
	return &fixed, nil
}

// fit decides what a tunnel goes over and how large its packets are, where the file does not. Between Linux
// routers the MTU is what the underlay leaves: who sends more is told so. Through a switch all passes that hosts
// send, unless the file gives an MTU: the outer packets are large enough, or they are cut on their way, which
// IPv4 allows and the kernel does not do for IPv6. The MTU is never larger than hosts' then, because Open
// vSwitch cuts the large frames of TCP to the MTU of the port.
func (l *Link) fit(carries int, whole bool) error {
	left := carries - overhead(l.Over)
	if l.Over == "" {
		l.Over = OverIPv6
		if left = carries - overhead(l.Over); whole && left < DefaultMTU {
			l.Over = OverIPv4
		}
	}
	switch {
	case l.MTU != 0:
		return nil
	case whole && l.Over == OverIPv6 && left < DefaultMTU:
		return fmt.Errorf("tunnel between %q and %q over ipv6: the underlay leaves %d bytes, too few for what hosts send; expected an mtu of %d at its links, an mtu of the tunnel, or over: ipv4",
			l.Ends[0], l.Ends[1], left, DefaultMTU+overhead(OverIPv6))
	case left < minMTU:
		return fmt.Errorf("tunnel between %q and %q: the underlay leaves %d bytes; expected at least %d: give its links a larger mtu", l.Ends[0], l.Ends[1], left, minMTU)
	case whole:
		l.MTU = DefaultMTU
	default:
		l.MTU = left
	}
	return nil
}

// checkTunnels finds what is wrong with what single links cannot show.
func (c *checker) checkTunnels() {
	c.checkOver()
	under := 0
	for _, l := range c.Links {
		a, b := c.Node(l.Ends[0]), c.Node(l.Ends[1])
		switch {
		case a == nil || b == nil:
		case l.Tunnel != "" && (!a.Kind.routes() || !b.Kind.routes()):
			c.r.errorf(l.Line, "tunnel between %q and %q; expected routers or switches at both ends", a.Name, b.Name)
		case c.Under(l):
			under++
			for _, n := range []*Node{a, b} {
				if !n.Kind.routes() && n.Kind != Underlay && !n.Kind.IsHost() && n.Kind != Controller && n.Kind != badKind {
					c.r.errorf(l.Line, "link between the underlay and %s %q; expected a router or switch, which has a tunnel through it, a host or the controller", n.Kind, n.Name)
				}
			}
		}
	}
	if under > maxUnder {
		c.r.errorf(1, "%d links of the underlay; expected at most %d", under, maxUnder)
	}
	if len(c.r.Errs) > 0 {
		return
	}
	at := c.Neighbours()
	for _, l := range c.Links {
		if l.Tunnel == "" {
			continue
		}
		if _, err := c.Fitted(at, l); err != nil {
			c.r.errorf(l.Line, "%v", err)
		}
	}
}
