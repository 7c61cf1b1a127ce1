package lab

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// replug sets an interface up again. The kernel forgets an interface's IPv6 addresses and routes when
// it goes down: the lab gives its own back, and leaves those of daemons to the daemons.
func (l *Lab) replug(w *wirer, ns string, p *Port) error {
	wasUp := false
	err := w.change(ns, p.Dev, "set up", func(h *netlink.Handle, link netlink.Link) error {
		wasUp = link.Attrs().RawFlags&unix.IFF_UP != 0
		return h.LinkSetUp(link)
	})
	if err != nil || wasUp {
		return err
	}
	return l.dress(w, ns, p)
}

// dress gives an interface that just came up what the lab puts on it.
func (l *Lab) dress(w *wirer, ns string, p *Port) error {
	n := p.Peer.Far // p is this node's end
	if n.Kind == Switch {
		return nil
	}
	if err := w.addr(ns, p.Dev, netip.PrefixFrom(n.LinkLocal, 64)); err != nil {
		return err
	}
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
