package guests

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/host/routing"
)

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
		before, err := routing.AllowNonlocalBind()
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
	space := x.in.space()
	for _, a := range all {
		at, _ := netip.AddrFromSlice(a.IP)
		l, err := netlink.LinkByIndex(a.LinkIndex)
		if err != nil || l.Attrs().Name == dev {
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
		l, err := netlink.LinkByName(dev)
		if err != nil {
			return err
		}
		for key, value := range map[string]string{"disable_ipv6": "0", "addr_gen_mode": "1", "accept_ra": "0", "accept_dad": "0"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+dev+"/"+key, []byte(value), 0); err != nil {
				return fmt.Errorf("set %s of %s: %w", key, dev, err)
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("bring up %s: %w", dev, err)
		}
		if err := x.kernel.Want(routing.Guest{Space: x.in.space(), Identity: x.identity, Link: l.Attrs().Index, Dev: dev, Gateway: here.Attrs().HardwareAddr}.Items()); err != nil {
			return fmt.Errorf("set up its routes and addresses: %w", err)
		}
		return nil
	})
}
