package guests

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// dev is the guest's end of the link.
	dev = "scaffold0"
	// fewBytes is the least that IPv6 needs.
	fewBytes = 1280
)

func (x *guest) dev() string { return linkOf(x.record) }

// linkOf is the host's end of a guest's link.
func linkOf(r *record) string { return fmt.Sprintf("scg%d", r.Number) }

// cable makes the link, or finds that of a daemon before this one.
func (x *guest) cable() error {
	if x.cabled() {
		return nil
	}
	if err := x.ns.do(func() error { return absent(dev) }); err != nil {
		return err
	}
	removeLink(x.record)
	x.mtu = max(x.in.Host.MTU(), fewBytes)
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: x.dev(), MTU: x.mtu}, PeerName: dev, PeerMTU: uint32(x.mtu),
		PeerNamespace: netlink.NsFd(x.ns.file.Fd()),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("this kernel makes no veth pairs: %w (modprobe veth)", err)
		}
		return fmt.Errorf("make the link %s to it: %w", x.dev(), err)
	}
	l, err := netlink.LinkByName(x.dev())
	if err != nil {
		return err
	}
	x.link = l.Attrs().Index
	netlink.LinkSetAlias(l, aliasOf(x.record)) //nolint:errcheck // for people
	// Nothing of it reaches this namespace's own stack, and nothing of this one goes there.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+x.dev()+"/disable_ipv6", []byte("1"), 0); err != nil {
		return fmt.Errorf("close the link %s to the host itself: %w", x.dev(), err)
	}
	return netlink.LinkSetUp(l)
}

func aliasOf(r *record) string { return "scaffold guest " + r.Name }

// absent reports an interface of somebody else that has the name of ours.
func absent(dev string) error {
	if _, err := netlink.LinkByName(dev); err == nil {
		return fmt.Errorf("it has an interface %s already, which is not this daemon's: remove it first", dev)
	}
	return nil
}

// cabled reports whether both ends of the link are there.
func (x *guest) cabled() bool {
	here, err := netlink.LinkByName(x.dev())
	if err != nil || here.Type() != "veth" || here.Attrs().Alias != aliasOf(x.record) {
		return false
	}
	err = x.ns.do(func() error {
		there, err := netlink.LinkByName(dev)
		if err == nil && (there.Attrs().ParentIndex != here.Attrs().Index || here.Attrs().ParentIndex != there.Attrs().Index) {
			return errors.New("another link")
		}
		return err
	})
	x.link, x.mtu = here.Attrs().Index, here.Attrs().MTU
	return err == nil
}

// fit makes the link carry what the uplinks do.
func (x *guest) fit(mtu int) error {
	if mtu = max(mtu, fewBytes); mtu == x.mtu {
		return nil
	}
	here, err := netlink.LinkByIndex(x.link)
	if err == nil {
		err = netlink.LinkSetMTU(here, mtu)
	}
	if err == nil {
		err = x.ns.do(func() error {
			there, err := netlink.LinkByName(dev)
			if err == nil {
				err = netlink.LinkSetMTU(there, mtu)
			}
			return err
		})
	}
	if err == nil {
		x.mtu = mtu
	}
	return err
}

// removeLink removes the host's end of a guest's link, and with it the other.
func removeLink(r *record) {
	if l, err := netlink.LinkByName(linkOf(r)); err == nil && l.Type() == "veth" {
		netlink.LinkDel(l) //nolint:errcheck // it goes with the guest's namespace
	}
}
