package uplinks

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/wire"
)

// An Uplink is one interface that may lead to a router.
type Uplink struct {
	Name   string
	Index  int  // of the interface, as it was last looked at
	Up     bool // there, switched on, with carrier and a link-local address that can be used
	MTU    int
	Tunnel Tunnel     // that makes the interface; nil of a cable's
	Router netip.Addr // that is followed on it
	Hello  wire.Hello // the last of it

	mac    []byte
	local  netip.Addr         // link-local
	turns  uint32             // how often the carrier came or went
	seen   bool               // its state was looked at
	bare   bool               // it would do, if it had a link-local address that can be used
	said   string             // the last that was logged about it
	cancel context.CancelFunc // of the goroutine that listens for HELLO; nil without one

	heard  bool
	rival  bool // another router greets on the link, and this one was asked whether it is still there
	asked  time.Time
	before *apiv1.Attachment // of the daemon before this one, until a router was heard
}

// look reads the state of the interface and reports whether it can be used.
func (u *Uplink) look() bool {
	link, err := netlink.LinkByName(u.Name)
	if err != nil {
		u.Up, u.Index = false, 0
		return false
	}
	a := link.Attrs()
	u.Index, u.mac, u.MTU = a.Index, a.HardwareAddr, a.MTU
	u.turns = carrierTurns(a.Index)
	const on = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	u.Up = a.RawFlags&on == on
	u.bare = false
	if u.Up {
		u.local = linkLocal(link)
		u.Up = u.local.IsValid()
		u.bare = !u.Up
	}
	if u.Tunnel != nil {
		ready, _ := u.Tunnel.Ready()
		u.Up = u.Up && ready
	}
	return u.Up
}

// linkLocal is the interface's own address. One that the kernel still asks the link about is taken at
// once: that would take a second, and duplicates of what is made from MAC addresses are for the router
// to complain about.
func linkLocal(link netlink.Link) netip.Addr {
	all, _ := netlink.AddrList(link, netlink.FAMILY_V6)
	for _, a := range all {
		ip, ok := netip.AddrFromSlice(a.IP)
		if !ok || !ip.IsLinkLocalUnicast() || a.Flags&unix.IFA_F_DADFAILED != 0 {
			continue
		}
		if (a.Flags&unix.IFA_F_TENTATIVE == 0 || settleAddress(link, ip) == nil) && delivered(link, ip) {
			return ip
		}
	}
	return netip.Addr{}
}

// delivered reports whether packets for the address reach this host: the kernel makes the route for that a
// moment after the address, and what comes before is lost. watchLinks tells of it.
func delivered(link netlink.Link, ip netip.Addr) bool {
	in, err := routing.DomainOf(link.Attrs().Index)
	if err != nil {
		return false // it is gone
	}
	filter := &netlink.Route{Table: in.Local(), LinkIndex: link.Attrs().Index}
	all, err := netlink.RouteListFiltered(netlink.FAMILY_V6, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
	return err != nil || slices.ContainsFunc(all, func(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.Equal(ip.AsSlice()) })
}

// settleAddress replaces a tentative address by one without duplicate address detection.
func settleAddress(link netlink.Link, ip netip.Addr) error {
	prefix := routing.IPNet(netip.PrefixFrom(ip, 64))
	if err := netlink.AddrDel(link, &netlink.Addr{IPNet: prefix}); err != nil {
		return err
	}
	return netlink.AddrAdd(link, &netlink.Addr{IPNet: prefix, Flags: unix.IFA_F_NODAD, Scope: unix.RT_SCOPE_LINK})
}

// trouble says why the uplink cannot be used.
func (u *Uplink) trouble() string {
	if u.Tunnel != nil && !u.Up {
		if _, said := u.Tunnel.Ready(); said != "" {
			return said
		}
		return "its tunnel is being made"
	}
	switch {
	case u.Index == 0:
		return "there is no such interface"
	case u.bare:
		return "it has no link-local address: is IPv6 off there?"
	case !u.Up:
		return "it is down or has no carrier"
	case !u.heard:
		return "no router answers there"
	}
	return ""
}

// Leads reports whether there is a router.
func (u *Uplink) Leads() bool { return u.Up && u.heard }

// Attachment is what the network is told of the uplink, nil when it leads nowhere.
func (u *Uplink) Attachment() *apiv1.Attachment {
	switch {
	case !u.Up:
		return nil
	case !u.heard:
		return u.before
	}
	return &apiv1.Attachment{Router: u.Hello.Name, Port: u.Hello.Port, LinkLocal: u.local.String(), Mac: u.mac, Mtu: uint32(u.MTU)}
}

// Relay is where the router leads to the controller. The zone is the interface's number: package net remembers names for
// a minute, also when another interface has the name by then.
func (u *Uplink) Relay() string {
	return fmt.Sprintf("http://[%s%%25%d]:%d", u.Router, u.Index, u.Hello.RelayPort)
}
