package wires

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/lab/plan"
)

// A Wirer builds interfaces; it holds one netlink socket in each namespace.
type Wirer struct {
	open map[string]*end
}

type end struct {
	ns   netns.NsHandle
	link *netlink.Handle
}

// New opens nothing yet: a namespace is opened when something is asked of it.
func New() *Wirer { return &Wirer{open: map[string]*end{}} }

// Close closes the sockets; what was made stays.
func (w *Wirer) Close() {
	for _, e := range w.open {
		e.link.Close()
		e.ns.Close()
	}
}

func (w *Wirer) at(name string) (*end, error) {
	if e := w.open[name]; e != nil {
		return e, nil
	}
	ns, err := netns.GetFromPath(plan.NetnsPath(name))
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	link, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("namespace %s: netlink: %w", name, err)
	}
	w.open[name] = &end{ns, link}
	return w.open[name], nil
}

// quiet keeps the kernel from adding addresses and asking for routers by itself: the lab gives every
// address, usable at once.
var quiet = [][2]string{
	{"ipv6/conf/all/disable_ipv6", "0"}, {"ipv6/conf/default/disable_ipv6", "0"},
	{"ipv6/conf/all/accept_dad", "0"}, {"ipv6/conf/default/accept_dad", "0"},
	{"ipv6/conf/all/accept_ra", "0"}, {"ipv6/conf/default/accept_ra", "0"},
	{"ipv6/conf/default/router_solicitations", "0"},
	{"ipv6/conf/default/addr_gen_mode", "1"}, // none
}

// namespace makes a node's namespace with its loopback up.
func (w *Wirer) namespace(name string, more ...[2]string) error {
	if err := makeNamespace(name); err != nil {
		return err
	}
	if err := sysctls(name, append(more, quiet...)); err != nil {
		return err
	}
	return w.up(name, "lo")
}

// firstIndex numbers one end of each link from afar. Where both ends have the same number the kernel takes
// them for one interface, and may tell of a carrier that came or went a second late (linkwatch_urgent_event).
const firstIndex = 1000

// freeIndex is a number that the namespace does not use, and has hardly ever used: an interface that is made
// anew is another one.
func (e *end) freeIndex() int {
	for {
		i := firstIndex + rand.IntN(1<<20)
		if _, err := e.link.LinkByIndex(i); err != nil {
			return i
		}
	}
}

// veth joins two namespaces.
func (w *Wirer) veth(nsA, devA, nsB, devB string, mtu int) error {
	a, err := w.at(nsA)
	if err != nil {
		return err
	}
	b, err := w.at(nsB)
	if err != nil {
		return err
	}
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: devA, Index: a.freeIndex(), MTU: mtu},
		PeerName:      devB,
		PeerMTU:       uint32(mtu),
		PeerNamespace: netlink.NsFd(b.ns),
	}
	if err := a.link.LinkAdd(pair); err != nil {
		return fmt.Errorf("link %s/%s - %s/%s: %w", nsA, devA, nsB, devB, err)
	}
	if err := w.up(nsA, devA); err != nil {
		return err
	}
	return w.up(nsB, devB)
}

// change finds an interface and does something to it.
func (w *Wirer) change(ns, dev, what string, f func(*netlink.Handle, netlink.Link) error) error {
	e, err := w.at(ns)
	if err != nil {
		return err
	}
	link, err := e.link.LinkByName(dev)
	if err == nil {
		err = f(e.link, link)
	}
	if err != nil {
		return fmt.Errorf("%s/%s: %s: %w", ns, dev, what, err)
	}
	return nil
}

func (w *Wirer) up(ns, dev string) error {
	return w.change(ns, dev, "set up", func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetUp(l) })
}

func (w *Wirer) down(ns, dev string) error {
	return w.change(ns, dev, "set down", func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetDown(l) })
}

// Addr gives an interface an address that it may use at once.
func (w *Wirer) Addr(ns, dev string, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NODAD}
	return w.change(ns, dev, "address "+p.String(), func(h *netlink.Handle, l netlink.Link) error {
		return h.AddrReplace(l, a)
	})
}

func (w *Wirer) route(ns string, r plan.Route) error {
	return w.change(ns, r.Dev, "route "+r.Prefix.String(), func(h *netlink.Handle, l netlink.Link) error {
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(r.Prefix), Priority: r.Metric, Protocol: unix.RTPROT_STATIC}
		if r.Prefix.Addr().Is4() && r.Via.Is6() { // RFC 5549
			route.Via = &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: r.Via.AsSlice()}
		} else {
			route.Gw = r.Via.AsSlice()
		}
		return h.RouteReplace(route)
	})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
