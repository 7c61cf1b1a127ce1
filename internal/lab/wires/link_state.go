package wires

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// State is what a link does that is none of the engine's: "up", "cut" (it loses everything), "unplugged", or "down" where
// an end is missing.
func (w *Wirer) State(c *plan.Link) string {
	state := "up"
	for i, n := range c.Nodes {
		if !n.Kind.IsNamespace() {
			continue
		}
		err := w.change(n.Netns, c.Ports[i].Dev, "look", func(h *netlink.Handle, link netlink.Link) error {
			switch {
			case link.Attrs().RawFlags&unix.IFF_UP == 0:
				state = "unplugged"
			case isCut(h, link) && state == "up":
				state = "cut"
			}
			return nil
		})
		if err != nil {
			return "down"
		}
	}
	return state
}
