package underlay

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
)

// A machine that is a router and a host has a cable to itself: a veth pair, both ends in the machine's one network
// namespace. The host's programs are where everybody looks for them, and its packets enter the router like anybody's.
const (
	OwnUplink = "sch0" // the host's end
	OwnPort   = "scr0" // the router's
)

// MakeOwn makes the cable, if it is not there, and switches both ends on.
func MakeOwn() error {
	if _, err := netlink.LinkByName(OwnUplink); errors.As(err, new(netlink.LinkNotFoundError)) {
		a := netlink.NewLinkAttrs()
		a.Name = OwnUplink
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: OwnPort}); err != nil {
			return fmt.Errorf("make the cable between this machine's host and its router, %s to %s: %w", OwnUplink, OwnPort, err)
		}
	}
	for _, name := range []string{OwnUplink, OwnPort} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("the cable between this machine's host and its router, %s: %w", name, err)
		}
		// A machine may have IPv6, or addresses that are made of hardware addresses, off for new interfaces.
		for key, value := range map[string]string{"disable_ipv6": "0", "addr_gen_mode": "0", "accept_dad": "0", "accept_ra": "0"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/"+key, []byte(value), 0); err != nil {
				return fmt.Errorf("set %s of %s: %w", key, name, err)
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("bring up %s: %w", name, err)
		}
	}
	return nil
}

// RemoveOwn takes the cable away, where it is.
func RemoveOwn() error {
	l, err := netlink.LinkByName(OwnUplink)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", OwnUplink, err)
	}
	return nil
}
