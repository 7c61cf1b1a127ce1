package nstest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// firstIndex numbers one end of each pair from afar. Where both ends have the same number the kernel takes
// them for one interface, and may tell of a carrier that came or went a second late (linkwatch_urgent_event).
const firstIndex = 1000

// Veth joins two namespaces by a pair of interfaces, both up, MTU 1500. Interfaces get their
// link-local addresses from the kernel, usable at once.
func Veth(t testing.TB, a *NS, devA string, b *NS, devB string) {
	t.Helper()
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: devA, Index: a.freeIndex(), MTU: 1500, Namespace: netlink.NsFd(a.Fd())},
		PeerName:      devB,
		PeerNamespace: netlink.NsFd(b.Fd()),
	}
	if err := a.link.LinkAdd(pair); err != nil {
		t.Fatalf("veth %s/%s - %s/%s: %v", a.Name, devA, b.Name, devB, err)
	}
	a.Up(t, devA)
	b.Up(t, devB)
}

func (n *NS) freeIndex() int {
	for i := firstIndex; ; i++ {
		if _, err := n.link.LinkByIndex(i); err != nil {
			return i
		}
	}
}

// Up sets the interface up.
func (n *NS) Up(t testing.TB, dev string) {
	t.Helper()
	n.must(t, "up "+dev, n.link.LinkSetUp(n.Dev(t, dev)))
}

// Down sets the interface down.
func (n *NS) Down(t testing.TB, dev string) {
	t.Helper()
	n.must(t, "down "+dev, n.link.LinkSetDown(n.Dev(t, dev)))
}

// Dev finds an interface.
func (n *NS) Dev(t testing.TB, dev string) netlink.Link {
	t.Helper()
	l, err := n.link.LinkByName(dev)
	n.must(t, "interface "+dev, err)
	return l
}

// Index is the number of an interface.
func (n *NS) Index(t testing.TB, dev string) int { t.Helper(); return n.Dev(t, dev).Attrs().Index }

// MAC is the hardware address of an interface.
func (n *NS) MAC(t testing.TB, dev string) net.HardwareAddr {
	t.Helper()
	return n.Dev(t, dev).Attrs().HardwareAddr
}

// Addr adds an address such as fd00::1/64, usable at once.
func (n *NS) Addr(t testing.TB, dev, cidr string) {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	n.must(t, "address "+cidr, err)
	a.Flags = unix.IFA_F_NODAD
	n.must(t, "address "+cidr+" on "+dev, n.link.AddrAdd(n.Dev(t, dev), a))
}

// LinkLocal is the link-local address of an interface, which the kernel gives it once it has a carrier.
func (n *NS) LinkLocal(t testing.TB, dev string) (ip net.IP) {
	t.Helper()
	link := n.Dev(t, dev)
	Wait(t, "ip -6 addr show dev "+dev+" in "+n.Name, func() error {
		addrs, err := n.link.AddrList(link, unix.AF_INET6)
		for _, a := range addrs {
			if a.IP.IsLinkLocalUnicast() && a.Flags&unix.IFA_F_TENTATIVE == 0 {
				ip = a.IP
				return nil
			}
		}
		return errors.Join(err, errors.New("no link-local address that may be used"))
	})
	return ip
}

// Route adds a route to the prefix dst by the next hop via (empty: on link) on dev.
func (n *NS) Route(t testing.TB, dst, via, dev string) {
	t.Helper()
	_, prefix, err := net.ParseCIDR(dst)
	n.must(t, "route "+dst, err)
	r := &netlink.Route{Dst: prefix, LinkIndex: n.Index(t, dev)}
	if via != "" {
		r.Gw = net.ParseIP(via)
	}
	n.must(t, "route "+dst+" via "+via+" dev "+dev, n.link.RouteReplace(r))
}

// Forward makes the namespace an IPv6 router.
func (n *NS) Forward(t testing.TB) { t.Helper(); n.Sysctl(t, "net/ipv6/conf/all/forwarding", "1") }

func (n *NS) must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %s: %v", n.Name, what, err)
	}
}

// Routing is what somebody may leave in the namespace's routing: its rules and routes, of both families. Left out are the
// routes that the kernel makes of addresses: those of IPv6 come a moment after their address, so that two looks differ
// between which nobody changed anything.
func (n *NS) Routing(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, family := range []string{"-4", "-6"} {
		for _, what := range []string{"rule", "route show table all"} {
			argv := append([]string{"ip", family}, strings.Fields(what)...)
			fmt.Fprintln(&b, strings.Join(argv, " "))
			for line := range strings.Lines(n.Run(t, argv...)) {
				if !strings.Contains(line, "proto kernel") {
					b.WriteString(line)
				}
			}
		}
	}
	return b.String()
}
