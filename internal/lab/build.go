package lab

import (
	"context"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// bridge is the management network's, in a namespace of its own.
const bridge = "bridge"

// managementDev is the interface of the controller and the routers on the management network.
const managementDev = "mgmt"

// build makes namespaces, links, addresses and static routes.
func (l *Lab) build(ctx context.Context) error {
	w := newWirer()
	defer w.close()
	if err := l.buildManagement(w); err != nil {
		return err
	}
	for _, n := range l.plan.spaces() {
		if err := l.buildNode(w, n); err != nil {
			return err
		}
	}
	if err := l.startEngine(ctx); err != nil {
		return err
	}
	for _, c := range l.plan.Cable {
		if err := l.buildLink(w, c); err != nil {
			return err
		}
	}
	for _, n := range l.plan.spaces() {
		if err := l.buildRoutes(w, n); err != nil {
			return err
		}
		if err := l.translate(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) managementNetns() string { return Netns(l.File.Name, managementNode) }

// buildManagement makes the network that a controller reaches its routers over.
func (l *Lab) buildManagement(w *wirer) error {
	if l.File.bare {
		return nil
	}
	ns := l.managementNetns()
	if err := w.namespace(ns); err != nil {
		return err
	}
	e, err := w.at(ns)
	if err != nil {
		return err
	}
	if err := e.link.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}); err != nil {
		return err
	}
	return w.up(ns, bridge)
}

func (l *Lab) buildNode(w *wirer, n *PlanNode) error {
	var more [][2]string
	if n.Kind == Plain || n.Kind == Underlay {
		more = [][2]string{{"ipv6/conf/all/forwarding", "1"}, {"ipv6/conf/default/forwarding", "1"}}
	}
	if n.Kind == Underlay || n.Kind == Plain {
		more = append(more, [2]string{"ipv4/ip_forward", "1"})
	}
	if err := w.namespace(n.Netns, more...); err != nil {
		return err
	}
	if !n.Management.IsValid() {
		return nil
	}
	ns, dev := l.managementNetns(), ifname("to-"+n.Name)
	if err := w.veth(n.Netns, managementDev, ns, dev, defaultMTU); err != nil {
		return err
	}
	err := w.change(ns, dev, "join the bridge", func(h *netlink.Handle, port netlink.Link) error {
		master, err := h.LinkByName(bridge)
		if err != nil {
			return err
		}
		return h.LinkSetMaster(port, master)
	})
	if err != nil {
		return err
	}
	if err := w.addr(n.Netns, managementDev, netip.PrefixFrom(n.Management, 64)); err != nil {
		return err
	}
	if n.Kind == Switch {
		return sysctls(n.Netns, deaf)
	}
	return nil
}

// deaf keeps the kernel of a switch's namespace away from what passes through its ports, all of which are
// made later: Open vSwitch alone takes and gives there.
var deaf = [][2]string{{"ipv6/conf/default/disable_ipv6", "1"}}

func (l *Lab) buildLink(w *wirer, c *PlanLink) error {
	a, b := c.Nodes[0], c.Nodes[1]
	switch {
	case c.Tunnel != nil:
		for i := range c.Nodes {
			if err := w.tunnel(c, i); err != nil {
				return err
			}
		}
	case c.Emulated == nil: // else the engine made the interfaces
		if err := w.veth(a.Netns, c.Ports[0].Dev, b.Netns, c.Ports[1].Dev, c.MTU); err != nil {
			return err
		}
	}
	for i, n := range c.Nodes {
		if !n.Kind.namespace() {
			continue
		}
		if err := w.up(n.Netns, c.Ports[i].Dev); err != nil {
			return err
		}
		if err := l.dress(w, n.Netns, c.Ports[i]); err != nil {
			return err
		}
		if err := w.shape(n.Netns, c.Ports[i].Dev, c.Rate); err != nil {
			return err
		}
		if !c.Unplugged {
			continue
		}
		if err := w.down(n.Netns, c.Ports[i].Dev); err != nil {
			return err
		}
	}
	return nil
}

// buildRoutes gives an IP router its routes, and addresses for its ICMP errors.
func (l *Lab) buildRoutes(w *wirer, n *PlanNode) error {
	for _, own := range []netip.Addr{n.Own, n.Own4} {
		if !own.IsValid() {
			continue
		}
		if err := w.addr(n.Netns, "lo", netip.PrefixFrom(own, own.BitLen())); err != nil {
			return err
		}
	}
	for _, r := range n.Routes {
		if err := w.route(n.Netns, r); err != nil {
			return err
		}
	}
	return nil
}
