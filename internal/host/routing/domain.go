package routing

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// A Domain is where the host's packets are routed: in the namespace itself, or in the VRF that its uplinks are in, for
// sockets that are bound to the VRF's device. The kernel takes a route's source for valid only where the VRF has it, and
// gives a packet to a socket of a VRF only where it came by the VRF's device: so that device is to such a domain what lo is
// to the namespace.
type Domain struct {
	link  int // what is local is here
	dev   string
	table int // of its routes
	// of the two rules that tell what is local. The kernel's own rule for VRFs has 1000, and in a VRF's table the services
	// are routed to a router, also what has just come from there.
	priority int
	vrf      bool
}

const beforeVRFs = 1000 - 1

var namespaceDomain = Domain{link: lo, dev: "lo", table: unix.RT_TABLE_MAIN, priority: table}

// DomainOf is that of an uplink.
func DomainOf(index int) (Domain, error) {
	l, err := netlink.LinkByIndex(index)
	if err != nil || l.Attrs().MasterIndex == 0 {
		return namespaceDomain, err
	}
	master, err := netlink.LinkByIndex(l.Attrs().MasterIndex)
	if v, ok := master.(*netlink.Vrf); ok {
		return Domain{link: v.Index, dev: v.Name, table: int(v.Table), priority: beforeVRFs, vrf: true}, nil
	}
	return namespaceDomain, err
}

// CommonDomain is that of all uplinks by which packets leave.
func CommonDomain(places []Place) (common Domain, err error) {
	for i, p := range places {
		at, err := DomainOf(p.Index)
		switch {
		case err != nil:
			return at, fmt.Errorf("uplink %s: %w", p.Uplink, err)
		case i == 0:
			common = at
		case at != common:
			return at, fmt.Errorf("the uplinks %s and %s are in different VRFs, and a program is in one: put them into the same one, or start hostd without one of them (--uplink)", places[0].Uplink, p.Uplink)
		}
	}
	return common, nil
}

// Is reports whether the domain is the VRF with that interface for its device.
func (d Domain) Is(index int) bool { return d.vrf && d.link == index }

// Local is the table in which the kernel says which addresses are the host's.
func (d Domain) Local() int {
	if d.vrf {
		return d.table
	}
	return unix.RT_TABLE_LOCAL
}

// Device is the device that the daemon's sockets for local ones are bound to; "" where that is none.
func (d Domain) Device() string {
	if d.vrf {
		return d.dev
	}
	return ""
}

// GivesToUnbound reports whether sockets that are bound to no device get what arrives.
func (d Domain) GivesToUnbound(p sid.Proto) bool {
	if !d.vrf {
		return true
	}
	accept, err := os.ReadFile(fmt.Sprintf("/proc/sys/net/ipv4/%v_l3mdev_accept", p)) // of both families
	return err == nil && accept[0] == '1'
}
