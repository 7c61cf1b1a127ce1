package lab

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// An underlay is a network of ordinary IP routers that know nothing of Scaffold and carry none of its packets
// themselves: each of its links is a subnet, of IPv6 and of IPv4, and tunnels between Scaffold's routers go
// through it.

// VXLAN is the one kind of tunnel.
const VXLAN = "vxlan"

// What tunnels go over.
const (
	overIPv6 = "ipv6"
	overIPv4 = "ipv4"
)

// vxlanPort is IANA's, RFC 7348 §5.
const vxlanPort = 4789

// maxUnder bounds the subnets of an underlay.
const maxUnder = 250

// UnderPrefix and UnderPrefix4 are what the subnets of underlays are taken from.
var (
	UnderPrefix  = netip.MustParsePrefix("fd5f:0:0:100::/56")
	UnderPrefix4 = netip.MustParsePrefix("10.94.0.0/16")
)

// A PlanTunnel is what a link that is a tunnel has at its two ends.
type PlanTunnel struct {
	VNI   int
	Outer [2]netip.Addr // of the ends in the underlay
}

// overhead is what VXLAN puts around a packet: IP, UDP, VXLAN and Ethernet headers.
func overhead(over string) int {
	if over == overIPv4 {
		return 20 + 8 + 8 + 14
	}
	return 40 + 8 + 8 + 14
}

// under reports whether a link is the underlay's.
func (f *File) under(l *Link) bool {
	for _, name := range l.Ends {
		if n := f.Node(name); n != nil && n.Kind == Underlay {
			return true
		}
	}
	return false
}

// addUnder gives the ends of the n-th link of the underlay their addresses.
func (c *PlanLink) addUnder(n int) {
	six, four := UnderPrefix.Addr().As16(), UnderPrefix4.Addr().As4()
	six[7], four[2] = byte(n), byte(n)
	for i, p := range c.Ports {
		six[15], four[3] = byte(i+1), byte(i+1)
		if c.Over != overIPv4 {
			p.Under = append(p.Under, netip.PrefixFrom(netip.AddrFrom16(six), 64))
		}
		if c.Over != overIPv6 {
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

// tunnels reports whether a host is on the underlay alone: its uplink is a tunnel.
func (f *File) tunnels(n *Node) bool {
	links := f.linksBetween(n.Name, "")
	return n.Kind == Host && len(links) > 0 && !slices.ContainsFunc(links, func(l *Link) bool { return !f.under(l) })
}

// checkTunneled finds what a host on the underlay lacks.
func (f *File) checkTunneled(r *reader, n *Node) {
	if !slices.ContainsFunc(f.Nodes, func(n *Node) bool { return n.Tunnels }) {
		r.errorf(n.Line, "host %q is on the underlay, and no router offers it a tunnel; expected tunnels: true at a router that is linked to the underlay", n.Name)
	}
	for _, c := range f.of(Controller) {
		if len(f.linksBetween(c.Name, "")) == 0 {
			r.errorf(n.Line, "host %q is on the underlay: the controller is unreachable; expected a link between %q and the underlay", n.Name, c.Name)
		}
	}
}

// checkOver finds families that are asked for where nobody asks.
func (f *File) checkOver(r *reader) {
	for _, l := range f.Links {
		if l.Over != "" && l.Tunnel == "" && !f.under(l) {
			r.errorf(l.Line, "over: only a tunnel or a link of the underlay goes over something; expected tunnel: %s beside it", VXLAN)
		}
	}
	for _, n := range f.Nodes {
		if why := n.cannotOffer(); why != "" {
			r.errorf(n.Line, "%s", why)
		}
		switch {
		case n.Kind == Host && n.Uplink != "" && !f.tunnels(n):
			r.errorf(n.Line, "host %q has an uplink that is a tunnel, and a link to a router; expected links to nodes of kind underlay alone", n.Name)
		case n.Kind == Router && n.Tunnels && !slices.ContainsFunc(f.linksBetween(n.Name, ""), f.under):
			r.errorf(n.Line, "router %q offers tunnels and has no link to the underlay; expected one to a node of kind underlay", n.Name)
		}
	}
}

// outer is the port's address in the underlay.
func (p *Port) outer(over string) netip.Addr {
	a, _ := p.under(over == overIPv4)
	return a
}

// crossing are the ports by which a way leaves each node from one to another, through nodes of the underlay
// alone; none if there is no way.
func (p *Plan) crossing(from, to *PlanNode) []*Port {
	came := map[*PlanNode]*Port{from: nil}
	for queue := []*PlanNode{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && at.Kind != Underlay {
			continue
		}
		for _, port := range at.Ports {
			if _, seen := came[port.Far]; port.Under == nil || seen {
				continue
			}
			came[port.Far] = port
			queue = append(queue, port.Far)
		}
	}
	var way []*Port
	for at := to; came[at] != nil; at = came[at].Peer.Far {
		way = append([]*Port{came[at]}, way...)
	}
	return way
}

// underRoutes are a node's routes to the subnets that it is not on.
func (p *Plan) underRoutes(n *PlanNode) (routes []Route) {
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

// addTunnel works out a tunnel; the mistake is one of the file.
func (p *Plan) addTunnel(c *PlanLink, vni int) error {
	there, back := p.crossing(c.Nodes[0], c.Nodes[1]), p.crossing(c.Nodes[1], c.Nodes[0])
	if there == nil || back == nil {
		return fmt.Errorf("tunnel between %q and %q: no way through nodes of kind underlay joins them", c.Ends[0], c.Ends[1])
	}
	carries := there[0].Link.MTU
	for _, port := range append(there, back...) {
		carries = min(carries, port.Link.MTU)
	}
	fixed := *c.Link // the file stays as it was read
	c.Link = &fixed
	if err := fixed.fit(carries, c.Nodes[0].Kind == Switch || c.Nodes[1].Kind == Switch); err != nil {
		return err
	}
	c.Tunnel = &PlanTunnel{VNI: vni, Outer: [2]netip.Addr{there[0].outer(c.Over), back[0].outer(c.Over)}}
	return nil
}

// fit decides what a tunnel goes over and how large its packets are, where the file does not. Between Linux
// routers the MTU is what the underlay leaves: who sends more is told so. Through a switch all passes that hosts
// send, unless the file gives an MTU: the outer packets are large enough, or they are cut on their way, which
// IPv4 allows and the kernel does not do for IPv6. The MTU is never larger than hosts' then, because Open
// vSwitch cuts the large frames of TCP to the MTU of the port.
func (l *Link) fit(carries int, whole bool) error {
	left := carries - overhead(l.Over)
	if l.Over == "" {
		l.Over = overIPv6
		if left = carries - overhead(l.Over); whole && left < defaultMTU {
			l.Over = overIPv4
		}
	}
	switch {
	case l.MTU != 0:
		return nil
	case whole && l.Over == overIPv6 && left < defaultMTU:
		return fmt.Errorf("tunnel between %q and %q over ipv6: the underlay leaves %d bytes, too few for what hosts send; expected an mtu of %d at its links, an mtu of the tunnel, or over: ipv4",
			l.Ends[0], l.Ends[1], left, defaultMTU+overhead(overIPv6))
	case left < minMTU:
		return fmt.Errorf("tunnel between %q and %q: the underlay leaves %d bytes; expected at least %d: give its links a larger mtu", l.Ends[0], l.Ends[1], left, minMTU)
	case whole:
		l.MTU = defaultMTU
	default:
		l.MTU = left
	}
	return nil
}

// checkTunnels finds what is wrong with what single links cannot show.
func (f *File) checkTunnels(r *reader) {
	f.checkOver(r)
	under := 0
	for _, l := range f.Links {
		a, b := f.Node(l.Ends[0]), f.Node(l.Ends[1])
		switch {
		case a == nil || b == nil:
		case l.Tunnel != "" && (!a.Kind.routes() || !b.Kind.routes()):
			r.errorf(l.Line, "tunnel between %q and %q; expected routers or switches at both ends", a.Name, b.Name)
		case f.under(l):
			under++
			for _, n := range []*Node{a, b} {
				if !n.Kind.routes() && n.Kind != Underlay && n.Kind != Host && n.Kind != Controller && n.Kind != badKind {
					r.errorf(l.Line, "link between the underlay and %s %q; expected a router or switch, which has a tunnel through it, a host or the controller", n.Kind, n.Name)
				}
			}
		}
	}
	if under > maxUnder {
		r.errorf(1, "%d links of the underlay; expected at most %d", under, maxUnder)
	}
	if len(r.Errs) > 0 {
		return
	}
	for _, err := range MakePlan(f).mistakes {
		r.errorf(err.Line, "%s", err.Text)
	}
}

// tunnel makes one end of a tunnel.
func (w *wirer) tunnel(c *PlanLink, i int) error {
	ns, dev := c.Nodes[i].Netns, c.Ports[i].Dev
	e, err := w.at(ns)
	if err != nil {
		return err
	}
	link := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: dev, MTU: c.MTU},
		VxlanId:   c.Tunnel.VNI, SrcAddr: c.Tunnel.Outer[i].AsSlice(), Group: c.Tunnel.Outer[1-i].AsSlice(), Port: vxlanPort,
	}
	if err := e.link.LinkAdd(link); err != nil {
		return fmt.Errorf("%s/%s: tunnel to %v: %w", ns, dev, c.Tunnel.Outer[1-i], err)
	}
	return w.up(ns, dev)
}

// offers are the addresses at which a router takes tunnels.
func (n *PlanNode) offers() (list []netip.Addr) {
	for _, p := range n.Ports {
		for _, a := range p.Under {
			list = append(list, a.Addr())
		}
	}
	return list
}

// seat is where hosts on the underlay find the controller: by IPv4 if it may be, which all of them have.
func (l *Lab) seat(host *PlanNode) string {
	ctl := l.plan.Node(l.File.of(Controller)[0].Name)
	four := slices.ContainsFunc(host.offers(), netip.Addr.Is4)
	for _, a := range ctl.offers() {
		if a.Is4() == four {
			return "http://" + netip.AddrPortFrom(a, ControllerPort).String()
		}
	}
	return l.controllerURLs()
}

// translate makes a node of the underlay a NAT: what comes from hosts leaves under its own address, and nothing
// comes to them that they did not ask for.
func (l *Lab) translate(ctx context.Context, n *PlanNode) error {
	if !n.NAT {
		return nil
	}
	var inside []string
	for _, p := range n.Ports {
		if p.Far.Kind == Host {
			inside = append(inside, fmt.Sprintf("%q", p.Dev))
		}
	}
	if len(inside) == 0 {
		return fmt.Errorf("%s: a NAT without hosts behind it", n.Name)
	}
	set := "{ " + strings.Join(inside, ", ") + " }"
	rules := "table ip nat {\n chain post {\n type nat hook postrouting priority 100\n oifname != " + set + " masquerade\n }\n" +
		" chain pass {\n type filter hook forward priority 0; policy drop\n ct state established,related accept\n iifname " + set + " accept\n }\n}\n"
	return inNetns(n.Netns, func() error {
		cmd := exec.CommandContext(ctx, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: a NAT needs nft: %w: %s", n.Name, err, bytes.TrimSpace(out))
		}
		return nil
	})
}
