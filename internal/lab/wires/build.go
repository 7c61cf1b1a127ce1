package wires

import (
	"context"
	"net/netip"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// bridge is the management network's, in a namespace of its own.
const bridge = "bridge"

// ManagementDev is the interface of the controller and the routers on the management network.
const ManagementDev = "mgmt"

// Build makes the namespaces of a plan, links, addresses and static routes. Interfaces that are not pairs of veth are made
// by engine, when all namespaces are there.
func Build(ctx context.Context, p *plan.Plan, engine func(context.Context) error) error {
	w := New()
	defer w.Close()
	if err := w.buildManagement(p); err != nil {
		return err
	}
	for _, n := range p.Spaces() {
		if err := w.buildNode(p, n); err != nil {
			return err
		}
	}
	if err := engine(ctx); err != nil {
		return err
	}
	for _, c := range p.Cable {
		if err := w.buildLink(c); err != nil {
			return err
		}
	}
	for _, n := range p.Spaces() {
		if err := w.buildRoutes(n); err != nil {
			return err
		}
		if err := translate(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func managementNetns(p *plan.Plan) string { return plan.Netns(p.File.Name, file.ManagementNode) }

// buildManagement makes the network that a controller reaches its routers over.
func (w *Wirer) buildManagement(p *plan.Plan) error {
	if p.File.Bare {
		return nil
	}
	ns := managementNetns(p)
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

func (w *Wirer) buildNode(p *plan.Plan, n *plan.Node) error {
	var more [][2]string
	if n.Kind == file.Plain || n.Kind == file.Underlay || n.Kind == file.Agent { // what an agent does not carry it forwards
		more = [][2]string{{"ipv6/conf/all/forwarding", "1"}, {"ipv6/conf/default/forwarding", "1"}}
	}
	if n.Kind == file.Underlay || n.Kind == file.Plain || n.Kind == file.Agent {
		more = append(more, [2]string{"ipv4/ip_forward", "1"})
	}
	if err := w.namespace(n.Netns, more...); err != nil {
		return err
	}
	if !n.Management.IsValid() {
		return nil
	}
	ns, dev := managementNetns(p), plan.InterfaceName("to-"+n.Name)
	if err := w.veth(n.Netns, ManagementDev, ns, dev, file.DefaultMTU); err != nil {
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
	if err := w.Addr(n.Netns, ManagementDev, netip.PrefixFrom(n.Management, 64)); err != nil {
		return err
	}
	if n.Kind == file.Switch {
		return sysctls(n.Netns, deaf)
	}
	return nil
}

// deaf keeps the kernel of a switch's namespace away from what passes through its ports, all of which are
// made later: Open vSwitch alone takes and gives there.
var deaf = [][2]string{{"ipv6/conf/default/disable_ipv6", "1"}}

func (w *Wirer) buildLink(c *plan.Link) error {
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
		if !n.Kind.IsNamespace() {
			continue
		}
		if err := w.up(n.Netns, c.Ports[i].Dev); err != nil {
			return err
		}
		if err := w.dress(n.Netns, c.Ports[i]); err != nil {
			return err
		}
		if err := w.Shape(n.Netns, c.Ports[i].Dev, c.Rate); err != nil {
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
func (w *Wirer) buildRoutes(n *plan.Node) error {
	for _, own := range []netip.Addr{n.Own, n.Own4} {
		if !own.IsValid() {
			continue
		}
		if err := w.Addr(n.Netns, "lo", netip.PrefixFrom(own, own.BitLen())); err != nil {
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
