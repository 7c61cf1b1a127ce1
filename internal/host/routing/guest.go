package routing

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// guestGateway is the host's end of each link, as guests see it: it has no address there, the neighbour is set.
var guestGateway = netip.MustParseAddr("fe80::1")

// A Guest is a namespace that is reached by one link.
type Guest struct {
	Space    sid.Space
	Identity netip.Addr
	Link     int // in it
	Dev      string
	Gateway  net.HardwareAddr // of the host's end
}

// Items is the set-up of a guest; what hangs on its link goes with it.
func (x Guest) Items() []Item {
	to := func(dst netip.Prefix) Item {
		return route(netlink.Route{
			LinkIndex: x.Link, Dst: IPNet(dst), Gw: guestGateway.AsSlice(), Src: x.Identity.AsSlice(), Priority: metric, Flags: int(netlink.FLAG_ONLINK),
			RtoMin: rtoMin, RtoMinLock: true, QuickACK: 1, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST,
		}, fmt.Sprintf("route %v dev %s src %v", dst, x.Dev, x.Identity))
	}
	return []Item{
		address(x.Link, x.Identity, x.Dev, false),
		neighbour(x.Link, x.Dev, x.Gateway),
		localRoute(namespaceDomain, x.Space.Services),
		localRoute(namespaceDomain, whole(x.Identity)),
		rule(netlink.Rule{Mark: LocalMark, Priority: table - 1}, fmt.Sprintf("rule fwmark %#x lookup %d", LocalMark, table)),
		rule(netlink.Rule{IifName: x.Dev, Priority: table}, fmt.Sprintf("rule iif %s lookup %d", x.Dev, table)),
		to(x.Space.AS),
		to(x.Space.Services),
	}
}

// neighbour makes the gateway known without asking: nothing at the other end answers.
func neighbour(link int, dev string, mac net.HardwareAddr) Item {
	n := &netlink.Neigh{LinkIndex: link, IP: guestGateway.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT, Family: netlink.FAMILY_V6}
	name := fmt.Sprintf("neighbour %v dev %s", guestGateway, dev)
	return Item{
		name: name, key: name,
		present: func(*view) (bool, error) {
			all, err := netlink.NeighList(link, netlink.FAMILY_V6)
			return slices.ContainsFunc(all, func(o netlink.Neigh) bool {
				return o.IP.Equal(n.IP) && o.State == netlink.NUD_PERMANENT && slices.Equal(o.HardwareAddr, mac)
			}), err
		},
		add:    func() error { return netlink.NeighSet(n) },
		remove: func() error { return netlink.NeighDel(n) },
	}
}
