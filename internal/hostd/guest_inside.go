package hostd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
)

// guestGateway is the host's end of each link, as guests see it: it has no address there, the neighbour is set.
var guestGateway = netip.MustParseAddr("fe80::1")

// enter takes the namespace, if nothing in it is in the way.
func (x *guest) enter() error {
	return x.ns.do(func() (err error) {
		if x.alone, err = api.Alone("hostd"); errors.Is(err, api.ErrRunning) {
			return errors.New("a hostd is its edge already: one of its own, or another host's of this machine")
		}
		if err != nil {
			return err
		}
		if err := x.conflict(); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			return fmt.Errorf("bring up lo: %w", err)
		}
		if err := x.openLoopback(); err != nil {
			return err
		}
		before, err := allowNonlocalBind()
		if x.Nonlocal == "" {
			x.Nonlocal = before
		}
		return err
	})
}

const loopbackOff = "/proc/sys/net/ipv6/conf/lo/disable_ipv6"

// openLoopback gives the guest IPv6 on its loopback: runtimes whose networks have none turn it off everywhere.
func (x *guest) openLoopback() error {
	b, err := os.ReadFile(loopbackOff)
	if err != nil {
		return fmt.Errorf("IPv6 is not in this kernel, or /proc/sys is closed: %w", err)
	}
	if b[0] != '1' {
		return nil
	}
	x.Closed = true
	if err := os.WriteFile(loopbackOff, []byte("0"), 0); err != nil {
		return fmt.Errorf("turn IPv6 on at its loopback: %w", err)
	}
	return nil
}

// conflict looks for addresses of the network that something else gave the guest.
func (x *guest) conflict() error {
	all, err := netlink.AddrList(nil, netlink.FAMILY_V6)
	if err != nil {
		return fmt.Errorf("list its addresses: %w", err)
	}
	space := x.d.home.Space
	for _, a := range all {
		at, _ := netip.AddrFromSlice(a.IP)
		l, err := netlink.LinkByIndex(a.LinkIndex)
		if err != nil || l.Attrs().Name == guestDev {
			continue
		}
		for _, p := range []netip.Prefix{space.Services, space.AS, space.Identities} {
			if p.Contains(at) {
				return fmt.Errorf("it has the address %v on %s, in the network's own prefix %v: take it away first", at, l.Attrs().Name, p)
			}
		}
	}
	return nil
}

// furnish gives the guest its address, routes and rules.
func (x *guest) furnish() error {
	here, err := netlink.LinkByIndex(x.link)
	if err != nil {
		return err
	}
	return x.ns.do(func() error {
		l, err := netlink.LinkByName(guestDev)
		if err != nil {
			return err
		}
		for key, value := range map[string]string{"disable_ipv6": "0", "addr_gen_mode": "1", "accept_ra": "0", "accept_dad": "0"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+guestDev+"/"+key, []byte(value), 0); err != nil {
				return fmt.Errorf("set %s of %s: %w", key, guestDev, err)
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("bring up %s: %w", guestDev, err)
		}
		if err := x.kernel.want(x.items(l.Attrs().Index, here.Attrs().HardwareAddr)); err != nil {
			return fmt.Errorf("set up its routes and addresses: %w", err)
		}
		return nil
	})
}

// items is the set-up of a guest; what hangs on its link goes with it.
func (x *guest) items(link int, gateway net.HardwareAddr) []item {
	space := x.d.home.Space
	to := func(dst netip.Prefix) item {
		return route(netlink.Route{
			LinkIndex: link, Dst: ipNet(dst), Gw: guestGateway.AsSlice(), Src: x.identity.AsSlice(), Priority: metric, Flags: int(netlink.FLAG_ONLINK),
			RtoMin: rtoMin, RtoMinLock: true, QuickACK: 1, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST,
		}, fmt.Sprintf("route %v dev %s src %v", dst, guestDev, x.identity))
	}
	return []item{
		address(link, x.identity, guestDev),
		neighbour(link, gateway),
		localRoute(space.Services),
		localRoute(whole(x.identity)),
		rule(netlink.Rule{Mark: LocalMark, Priority: table - 1}, fmt.Sprintf("rule fwmark %#x lookup %d", LocalMark, table)),
		rule(netlink.Rule{IifName: guestDev, Priority: table}, fmt.Sprintf("rule iif %s lookup %d", guestDev, table)),
		to(space.AS),
		to(space.Services),
	}
}

// neighbour makes the gateway known without asking: nothing at the other end answers.
func neighbour(link int, mac net.HardwareAddr) item {
	n := &netlink.Neigh{LinkIndex: link, IP: guestGateway.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT, Family: netlink.FAMILY_V6}
	name := fmt.Sprintf("neighbour %v dev %s", guestGateway, guestDev)
	return item{
		name: name, key: name,
		present: func(*kernelView) (bool, error) {
			all, err := netlink.NeighList(link, netlink.FAMILY_V6)
			return slices.ContainsFunc(all, func(o netlink.Neigh) bool {
				return o.IP.Equal(n.IP) && o.State == netlink.NUD_PERMANENT && slices.Equal(o.HardwareAddr, mac)
			}), err
		},
		add:    func() error { return netlink.NeighSet(n) },
		remove: func() error { return netlink.NeighDel(n) },
	}
}
