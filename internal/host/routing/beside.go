package routing

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A host may run beside the router of its machine, in one network namespace: its uplink then is a cable to that router
// (underlay.OwnUplink). Three things differ, for the router's routes are in the main table and its packets pass by:
//
//   - what the host's programs send is routed by a table of its own, asked for packets that begin here alone;
//   - the host's addresses are local for packets that come by its uplink alone: any others are to go to it as to any
//     host, by way of the edge;
//   - programs here send into the network by the uplink alone: the router's ports have no edge that looks at sources.
const (
	// besideTable has the routes of a host beside a router.
	besideTable = table + 2
	// besideRule is the priority of the rule for it; behind it what no uplink takes, then the end. The router's own
	// packets were taken before (routerd).
	besideRule = table + 1
)

// earlyDemux has the kernel find a connected socket of UDP before it asks the routes: for packets of any interface.
const earlyDemux = "/proc/sys/net/ipv4/udp_early_demux" // of both families

// TakeEarlyDemux switches it off, so that what is local by the uplink alone is so for connected sockets too, and returns
// what it was before.
func TakeEarlyDemux() (before string, err error) {
	b, err := os.ReadFile(earlyDemux)
	if err == nil {
		err = os.WriteFile(earlyDemux, []byte("0"), 0)
	}
	if err != nil {
		return "", fmt.Errorf("have packets for sockets of UDP routed first: %w", err)
	}
	return string(b[:1]), nil
}

// GiveBackEarlyDemux puts it back as it was.
func GiveBackEarlyDemux(before string) {
	os.WriteFile(earlyDemux, []byte(before), 0) //nolint:errcheck // it was written before
}

// beside is what else a host has beside a router.
func beside(space sid.Space, identity netip.Addr) []Item {
	all := []Item{
		unlocal(lo, identity, "lo"),
		sending{priority: besideRule, table: besideTable}.item(),
	}
	for _, dst := range [...]netip.Prefix{space.AS, space.Services} {
		all = append(all, sending{priority: besideRule + 2, to: dst}.item())
	}
	return all
}

// unlocal takes an address out of the kernel's table of what is local, which is asked before all others and for every
// interface. The address stays: programs and routes may have it as their source.
func unlocal(link int, a netip.Addr, dev string) Item {
	r := netlink.Route{LinkIndex: link, Dst: IPNet(whole(a)), Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL}
	name := fmt.Sprintf("no route local %v dev %s", a, dev)
	return Item{
		name: name,
		key:  name,
		present: func(v *view) (bool, error) {
			all, err := v.routes()
			return !slices.ContainsFunc(all, func(o netlink.Route) bool {
				return o.Table == unix.RT_TABLE_LOCAL && o.Type == unix.RTN_LOCAL && o.Dst != nil && o.Dst.String() == r.Dst.String()
			}), err
		},
		add: func() error {
			if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			return nil
		},
		remove: func() error { return nil },
		again:  true, // the address comes with it, after the routes were listed
	}
}

// Sweep removes what a daemon before this one left for other uplinks, or for a host that was beside no router: only
// what is wanted again would be found. identity is the host's own address.
func Sweep(identity netip.Addr) error {
	ours := []int{table, lostTable, besideTable}
	rules, err := netlink.RuleList(netlink.FAMILY_V6)
	if err != nil {
		return fmt.Errorf("list the rules: %w", err)
	}
	var errs []error
	for i := range rules {
		r := &rules[i]
		r.Family = netlink.FAMILY_V6
		switch ends := r.Table <= 0 && slices.Contains([]int{afterMain, besideRule + 1, besideRule + 2}, r.Priority); {
		case r.IifName == "lo" && (ends || slices.Contains(ours, r.Table)):
			errs = append(errs, sendingOf(r).change(unix.RTM_DELRULE, 0))
		case slices.Contains(ours, r.Table):
			errs = append(errs, netlink.RuleDel(r))
		}
	}
	var now view
	routes, err := now.routes()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for i := range routes {
		r := &routes[i]
		// Those of a router bear the same protocol; none of them says how TCP is to wait. A VRF's table may be any.
		host := r.RtoMinLock || r.Type == unix.RTN_THROW || r.Type == unix.RTN_UNREACHABLE && r.Priority == last
		if r.Protocol == routeProtocol && (host || slices.Contains(ours, r.Table)) {
			errs = append(errs, netlink.RouteDel(r))
		}
	}
	return errors.Join(append(errs, leaveVRFs(identity))...)
}

// leaveVRFs takes the host's identity off the devices of VRFs. On lo it is wanted again.
func leaveVRFs(identity netip.Addr) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list the devices of VRFs: %w", err)
	}
	var errs []error
	for _, l := range links {
		if _, ok := l.(*netlink.Vrf); !ok {
			continue
		}
		addr := &netlink.Addr{IPNet: IPNet(whole(identity))}
		if err := netlink.AddrDel(l, addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
