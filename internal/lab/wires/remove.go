package wires

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/lab/plan"
)

// remove deletes an interface, as when an adapter is pulled out: with a veth pair both ends go. One
// that is gone stays gone.
func (w *Wirer) remove(ns string, p *plan.Port) error {
	e, err := w.at(ns)
	if err != nil {
		return err
	}
	link, err := e.link.LinkByName(p.Dev)
	if err == nil {
		err = e.link.LinkDel(link)
	}
	var none netlink.LinkNotFoundError
	if err != nil && !errors.As(err, &none) {
		return fmt.Errorf("%s/%s: delete: %w", ns, p.Dev, err)
	}
	return nil
}

// Restore makes the interfaces of a link anew when they were removed: with new numbers and without
// whatever daemons had set up on them.
func (w *Wirer) Restore(c *plan.Link) error {
	if c.Tunnel != nil {
		return w.restoreTunnel(c)
	}
	if c.Emulated != nil {
		return nil // the engine's interfaces stay
	}
	e, err := w.at(c.Nodes[0].Netns)
	if err != nil {
		return err
	}
	_, err = e.link.LinkByName(c.Ports[0].Dev)
	var none netlink.LinkNotFoundError
	if err == nil || !errors.As(err, &none) {
		return nil // what is wrong is said by who needs the interface
	}
	if err := w.veth(c.Nodes[0].Netns, c.Ports[0].Dev, c.Nodes[1].Netns, c.Ports[1].Dev, c.MTU); err != nil {
		return err
	}
	for i, n := range c.Nodes {
		if err := w.dress(n.Netns, c.Ports[i]); err != nil {
			return err
		}
	}
	return nil
}

// restoreTunnel makes the ends of a tunnel anew that were removed.
func (w *Wirer) restoreTunnel(c *plan.Link) error {
	for i, n := range c.Nodes {
		e, err := w.at(n.Netns)
		if err != nil {
			return err
		}
		var none netlink.LinkNotFoundError
		if _, err := e.link.LinkByName(c.Ports[i].Dev); !errors.As(err, &none) {
			continue
		}
		if err := w.tunnel(c, i); err != nil {
			return err
		}
		if err := w.dress(n.Netns, c.Ports[i]); err != nil {
			return err
		}
	}
	return nil
}
