package routing

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// table holds what is local for packets that arrive, and is never asked for packets that leave:
	// a host that serves a name reaches it through the network like anyone else.
	table = 23727
	// LocalMark marks the daemon's own packets to local sockets; they never leave the host.
	LocalMark = 0x5caf
	// routeProtocol is shown by `ip route` beside our routes.
	routeProtocol = 0x5c
	// rtoMin in ms, just above the 40 ms of a delayed ACK: below, retransmissions would be spurious.
	rtoMin = 45
)

const (
	lo = 1
	// metric is that of the kernel's own choice. The routes of the uplinks follow it, the preferred uplink's first:
	// what is bound to an uplink finds its own, and where one is lost the next is there already.
	metric = 1024
)

func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 128) }

func localRoute(in Domain, dst netip.Prefix) Item {
	return route(netlink.Route{LinkIndex: in.link, Dst: IPNet(dst), Priority: metric, Table: table, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST},
		fmt.Sprintf("route local %v dev %s table %d", dst, in.dev, table))
}

// IPNet is a prefix as package netlink takes it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}
}

// address is one /128 without duplicate address detection: a tentative address cannot be a source. Bare is one without
// the route that the kernel makes of its prefix.
func address(link int, a netip.Addr, dev string, bare bool) Item {
	dummy := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: link}}
	addr := &netlink.Addr{IPNet: IPNet(netip.PrefixFrom(a, 128)), Flags: unix.IFA_F_NODAD}
	if bare {
		addr.Flags |= unix.IFA_F_NOPREFIXROUTE
	}
	name := fmt.Sprintf("address %v dev %s", a, dev)
	return Item{
		name: name,
		key:  fmt.Sprint(name, link),
		present: func(v *view) (bool, error) {
			all, err := v.addresses()
			return slices.ContainsFunc(all, func(o netlink.Addr) bool { return o.LinkIndex == link && o.IP.Equal(addr.IP) }), err
		},
		add:    func() error { return netlink.AddrReplace(dummy, addr) },
		remove: func() error { return netlink.AddrDel(dummy, addr) },
	}
}

func route(r netlink.Route, name string) Item {
	r.Protocol = routeProtocol
	r.Family = netlink.FAMILY_V6
	return Item{
		name: name,
		key:  fmt.Sprint("route ", r.Dst, r.Table, r.Priority),
		present: func(v *view) (bool, error) {
			all, err := v.routes()
			return slices.ContainsFunc(all, func(o netlink.Route) bool { return sameRoute(o, r) }), err
		},
		add:    func() error { return netlink.RouteReplace(&r) },
		remove: func() error { return netlink.RouteDel(&r) },
	}
}

func sameRoute(a, b netlink.Route) bool {
	return a.Table == b.Table && a.Dst != nil && a.Dst.String() == b.Dst.String() && a.LinkIndex == b.LinkIndex && a.Priority == b.Priority && a.Gw.Equal(b.Gw) && (b.Src == nil || a.Src.Equal(b.Src)) &&
		a.RtoMin == b.RtoMin && a.RtoMinLock == b.RtoMinLock && a.QuickACK == b.QuickACK && a.Type == b.Type
}

func rule(want netlink.Rule, name string) Item {
	r := netlink.NewRule()
	r.Family, r.Table, r.Priority, r.Mark, r.IifName = netlink.FAMILY_V6, table, want.Priority, want.Mark, want.IifName
	return Item{
		name: name,
		key:  fmt.Sprint(name, r.Priority),
		present: func(v *view) (bool, error) {
			return v.hasRule(func(o netlink.Rule) bool {
				return o.Table == table && o.Mark == r.Mark && o.IifName == r.IifName && o.Priority == r.Priority
			})
		},
		add:    func() error { return netlink.RuleAdd(r) },
		remove: func() error { return netlink.RuleDel(r) },
	}
}
