package routing

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A Place is an uplink by which packets leave.
type Place struct {
	Uplink  string
	Index   int // of the interface
	Rank    int // among all uplinks of the host
	Locator sid.Locator
	Router  netip.Addr
}

// A Host is one that is at places, the preferred one first, in a domain.
type Host struct {
	Space    sid.Space
	Identity netip.Addr
	Domain   Domain
	Beside   bool // a router works in this namespace
	Places   []Place
}

// Items is the set-up of docs/architecture.md for it.
func (h Host) Items() []Item {
	identity, in := h.Identity, h.Domain
	all := []Item{
		address(in.link, identity, in.dev, h.Beside),
		localRoute(in, h.Space.Services),
		localRoute(in, whole(identity)),
		rule(netlink.Rule{Mark: LocalMark, Priority: in.priority - 1}, fmt.Sprintf("rule fwmark %#x lookup %d", LocalMark, table)),
	}
	main, behind := in.table, afterMain
	if h.Beside {
		main, behind = besideTable, besideRule+1
		all = append(all, beside(h.Space, identity)...)
	}
	if in.vrf {
		// Packets that arrive are the VRF's by the time they are routed.
		all = append(all, rule(netlink.Rule{IifName: in.dev, Priority: in.priority}, fmt.Sprintf("rule iif %s lookup %d", in.dev, table)))
		all = append(all, unreachable(h.Space, main)...)
	} else {
		all = append(all, nowhere(h.Space, identity, main, behind)...)
	}
	for i, p := range h.Places {
		all = append(all,
			address(p.Index, p.Locator.Host(), p.Uplink, h.Beside),
			rule(netlink.Rule{IifName: p.Uplink, Priority: in.priority}, fmt.Sprintf("rule iif %s lookup %d", p.Uplink, table)),
			via(p, h.Space.AS, p.Locator.Host(), metric+1+p.Rank, main),
			via(p, h.Space.Services, identity, metric+i, main))
		if h.Beside {
			all = append(all, unlocal(p.Index, p.Locator.Host(), p.Uplink), localRoute(in, whole(p.Locator.Host())))
		}
	}
	return all
}

func via(p Place, dst netip.Prefix, src netip.Addr, metric, table int) Item {
	return route(netlink.Route{
		LinkIndex: p.Index, Dst: IPNet(dst), Gw: p.Router.AsSlice(), Src: src.AsSlice(), Priority: metric,
		RtoMin: rtoMin, RtoMinLock: true, QuickACK: 1, Table: table, Type: unix.RTN_UNICAST,
	}, fmt.Sprintf("route %v via %v dev %s src %v", dst, p.Router, p.Uplink, src))
}
