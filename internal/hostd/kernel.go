package hostd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
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

	nonlocalBind = "/proc/sys/net/ipv6/ip_nonlocal_bind"
)

// An item is one thing in the kernel that must be there: an address, a route or a rule.
type item struct {
	name    string // for people; two of the same name are the same
	key     string // what adding it replaces
	present func(*kernelView) (bool, error)
	add     func() error
	remove  func() error
	again   bool // added anew whenever another one was
}

// A kernel keeps the items of the host's network namespace in place.
type kernel struct {
	log   *slog.Logger
	items []item
}

// want replaces the items: the new ones are put in place, then those that are not wanted any more are
// removed, so that there is no moment without a route.
func (k *kernel) want(items []item) error {
	before := k.items
	k.items = items
	_, err := k.restore()
	for _, old := range slices.Backward(before) {
		if !slices.ContainsFunc(items, func(i item) bool { return i.key == old.key }) {
			old.remove() //nolint:errcheck // with the interface it went by itself
		}
	}
	return err
}

// restore puts back what is missing and names it.
func (k *kernel) restore() (missing []string, err error) {
	var now kernelView
	changed := false // what could not be added changes nothing, and must not wake us again
	for _, i := range k.items {
		ok, e := i.present(&now)
		if e == nil && !ok {
			missing = append(missing, i.name)
			e = i.add()
			changed = changed || e == nil
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", i.name, e))
		}
	}
	for _, i := range k.items {
		if i.again && changed {
			err = errors.Join(err, i.add())
		}
	}
	return missing, err
}

// remove takes all items back, the last first.
func (k *kernel) remove() {
	for _, i := range slices.Backward(k.items) {
		i.remove()
	}
	k.items = nil
}

// items is the set-up of docs/architecture.md for a host at those places.
func (d *daemon) items(h *home, places []place) []item {
	identity := h.Space.Identity(d.identity)
	all := []item{
		address(lo, identity, "lo"),
		localRoute(h.Space.Services),
		localRoute(whole(identity)),
		rule(netlink.Rule{Mark: LocalMark, Priority: table - 1}, fmt.Sprintf("rule fwmark %#x lookup %d", LocalMark, table)),
	}
	all = append(all, nowhere(h.Space, identity)...)
	live := 0
	for i := range places {
		if p := &places[i]; p.live() {
			all = append(all,
				address(p.Index, p.Locator.Host(), p.Uplink),
				rule(netlink.Rule{IifName: p.Uplink, Priority: table}, fmt.Sprintf("rule iif %s lookup %d", p.Uplink, table)),
				via(p, h.Space.AS, p.Locator.Host(), metric+1+d.rank(p.Uplink)),
				via(p, h.Space.Services, identity, metric+live))
			live++
		}
	}
	return all
}

const (
	lo = 1
	// metric is that of the kernel's own choice. The routes of the uplinks follow it, the preferred uplink's first:
	// what is bound to an uplink finds its own, and where one is lost the next is there already.
	metric = 1024
)

func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 128) }

func via(p *place, dst netip.Prefix, src netip.Addr, metric int) item {
	return route(netlink.Route{
		LinkIndex: p.Index, Dst: ipNet(dst), Gw: p.Router.AsSlice(), Src: src.AsSlice(), Priority: metric,
		RtoMin: rtoMin, RtoMinLock: true, QuickACK: 1, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST,
	}, fmt.Sprintf("route %v via %v dev %s src %v", dst, p.Router, p.Uplink, src))
}

func localRoute(dst netip.Prefix) item {
	return route(netlink.Route{LinkIndex: lo, Dst: ipNet(dst), Priority: metric, Table: table, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST},
		fmt.Sprintf("route local %v dev lo table %d", dst, table))
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)}
}

// address is one /128 without duplicate address detection: a tentative address cannot be a source.
func address(link int, a netip.Addr, dev string) item {
	dummy := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: link}}
	addr := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, 128)), Flags: unix.IFA_F_NODAD}
	name := fmt.Sprintf("address %v dev %s", a, dev)
	return item{
		name: name,
		key:  fmt.Sprint(name, link),
		present: func(v *kernelView) (bool, error) {
			all, err := v.addresses()
			return slices.ContainsFunc(all, func(o netlink.Addr) bool { return o.LinkIndex == link && o.IP.Equal(addr.IP) }), err
		},
		add:    func() error { return netlink.AddrReplace(dummy, addr) },
		remove: func() error { return netlink.AddrDel(dummy, addr) },
	}
}

func route(r netlink.Route, name string) item {
	r.Protocol = routeProtocol
	r.Family = netlink.FAMILY_V6
	return item{
		name: name,
		key:  fmt.Sprint("route ", r.Dst, r.Table, r.Priority),
		present: func(v *kernelView) (bool, error) {
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

func rule(want netlink.Rule, name string) item {
	r := netlink.NewRule()
	r.Family, r.Table, r.Priority, r.Mark, r.IifName = netlink.FAMILY_V6, table, want.Priority, want.Mark, want.IifName
	return item{
		name: name,
		key:  name,
		present: func(v *kernelView) (bool, error) {
			return v.hasRule(func(o netlink.Rule) bool {
				return o.Table == table && o.Mark == r.Mark && o.IifName == r.IifName
			})
		},
		add:    func() error { return netlink.RuleAdd(r) },
		remove: func() error { return netlink.RuleDel(r) },
	}
}

// allowNonlocalBind lets programs bind service addresses, which are on no interface, and returns what
// the switch was before.
func allowNonlocalBind() (before string, err error) {
	b, err := os.ReadFile(nonlocalBind)
	if err != nil {
		return "", fmt.Errorf("IPv6 is off in this network namespace: %w", err)
	}
	if err := os.WriteFile(nonlocalBind, []byte("1"), 0); err != nil {
		return "", fmt.Errorf("let programs bind service addresses: %w", err)
	}
	return string(b[:1]), nil
}
