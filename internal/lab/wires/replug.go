package wires

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// replug sets an interface up again. The kernel forgets an interface's IPv6 addresses and routes when
// it goes down: the lab gives its own back, and leaves those of daemons to the daemons.
func (w *Wirer) replug(ns string, p *plan.Port) error {
	wasUp := false
	err := w.change(ns, p.Dev, "set up", func(h *netlink.Handle, link netlink.Link) error {
		wasUp = link.Attrs().RawFlags&unix.IFF_UP != 0
		return h.LinkSetUp(link)
	})
	if err != nil || wasUp {
		return err
	}
	return w.dress(ns, p)
}

// dress gives an interface that just came up what the lab puts on it.
func (w *Wirer) dress(ns string, p *plan.Port) error {
	n := p.Peer.Far // p is this node's end
	if p.Under != nil {
		return w.dressUnder(ns, n, p)
	}
	if n.Kind == file.Switch {
		return nil
	}
	if p.Far.Kind == file.Switch {
		if err := cutDatagrams(ns, p.Dev); err != nil {
			return err
		}
	}
	for _, a := range append([]netip.Prefix{netip.PrefixFrom(n.LinkLocal, 64)}, p.Addrs...) {
		if err := w.Addr(ns, p.Dev, a); err != nil {
			return err
		}
	}
	return w.routes(ns, n, p)
}

// dressUnder gives the end of a link of the underlay its addresses. The kernel of a switch's namespace has a
// part in it: it packs and unpacks what goes through tunnels.
func (w *Wirer) dressUnder(ns string, n *plan.Node, p *plan.Port) error {
	if n.Kind == file.Switch {
		if err := sysctls(ns, [][2]string{{"ipv6/conf/" + p.Dev + "/disable_ipv6", "0"}}); err != nil {
			return err
		}
	}
	// Without a link-local address the kernel asks for no neighbour on behalf of others.
	for _, a := range append([]netip.Prefix{netip.PrefixFrom(n.LinkLocal, 64)}, p.Under...) {
		if err := w.Addr(ns, p.Dev, a); err != nil {
			return err
		}
	}
	return w.routes(ns, n, p)
}

// routes sets the static routes of a node by one of its ports.
func (w *Wirer) routes(ns string, n *plan.Node, p *plan.Port) error {
	for _, r := range n.Routes {
		if r.Dev != p.Dev {
			continue
		}
		if err := w.route(ns, r); err != nil {
			return err
		}
	}
	return nil
}
