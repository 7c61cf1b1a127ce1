package hostd

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/wire"
)

// An uplink is one interface that may lead to a router.
type uplink struct {
	name   string
	index  int
	up     bool // there, switched on, with carrier and a link-local address that can be used
	mac    []byte
	mtu    int
	local  netip.Addr         // link-local
	turns  uint32             // how often the carrier came or went
	seen   bool               // its state was looked at
	bare   bool               // it would do, if it had a link-local address that can be used
	said   string             // the last that was logged about it
	cancel context.CancelFunc // of the goroutine that listens for HELLO; nil without one

	tunnel *tunneler // that makes the interface; nil of a cable's

	router netip.Addr
	hello  wire.Hello
	heard  bool
	rival  bool // another router greets on the link, and this one was asked whether it is still there
	asked  time.Time
	before *apiv1.Attachment // of the daemon before this one, until a router was heard
	bid    *bid              // the controller was asked for a place and has not given it
}

// look reads the state of the interface and reports whether it can be used.
func (u *uplink) look() bool {
	link, err := netlink.LinkByName(u.name)
	if err != nil {
		u.up, u.index = false, 0
		return false
	}
	a := link.Attrs()
	u.index, u.mac, u.mtu = a.Index, a.HardwareAddr, a.MTU
	u.turns = carrierTurns(a.Index)
	const on = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	u.up = a.RawFlags&on == on
	u.bare = false
	if u.up {
		u.local = linkLocal(link)
		u.up = u.local.IsValid()
		u.bare = !u.up
	}
	if u.tunnel != nil {
		ready, _, _ := u.tunnel.state()
		u.up = u.up && ready
	}
	return u.up
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
	filter := &netlink.Route{Table: unix.RT_TABLE_LOCAL, LinkIndex: link.Attrs().Index}
	all, err := netlink.RouteListFiltered(netlink.FAMILY_V6, filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
	return err != nil || slices.ContainsFunc(all, func(r netlink.Route) bool { return r.Dst != nil && r.Dst.IP.Equal(ip.AsSlice()) })
}

// settleAddress replaces a tentative address by one without duplicate address detection.
func settleAddress(link netlink.Link, ip netip.Addr) error {
	prefix := ipNet(netip.PrefixFrom(ip, 64))
	if err := netlink.AddrDel(link, &netlink.Addr{IPNet: prefix}); err != nil {
		return err
	}
	return netlink.AddrAdd(link, &netlink.Addr{IPNet: prefix, Flags: unix.IFA_F_NODAD, Scope: unix.RT_SCOPE_LINK})
}

// trouble says why the uplink cannot be used.
func (u *uplink) trouble() string {
	if u.tunnel != nil && !u.up {
		if _, _, said := u.tunnel.state(); said != "" {
			return said
		}
		return "its tunnel is being made"
	}
	switch {
	case u.index == 0:
		return "there is no such interface"
	case u.bare:
		return "it has no link-local address: is IPv6 off there?"
	case !u.up:
		return "it is down or has no carrier"
	case !u.heard:
		return "no router answers there"
	}
	return ""
}

// leads reports whether there is a router.
func (u *uplink) leads() bool { return u.up && u.heard }

// attachment is what the network is told of the uplink, nil when it leads nowhere.
func (u *uplink) attachment() *apiv1.Attachment {
	switch {
	case !u.up:
		return nil
	case !u.heard:
		return u.before
	}
	return &apiv1.Attachment{Router: u.hello.Name, Port: u.hello.Port, LinkLocal: u.local.String(), Mac: u.mac, Mtu: uint32(u.mtu)}
}

// uplink finds one by name.
func (d *daemon) uplink(name string) *uplink {
	for _, u := range d.uplinks {
		if u.name == name {
			return u
		}
	}
	return nil
}

// active is the first uplink that leads to a router.
func (d *daemon) active() *uplink {
	for _, u := range d.uplinks {
		if u.leads() {
			return u
		}
	}
	return nil
}

// linksChanged looks at the uplinks; those in down were down at some time since the last look.
func (d *daemon) linksChanged(down map[int]bool) {
	for _, u := range d.uplinks {
		d.checkUplink(u, down[u.index])
	}
}

// checkUplink notices that an uplink came, went or lost its carrier, be it for a moment.
func (d *daemon) checkUplink(u *uplink, flapped bool) {
	index, up, turns, first := u.index, u.up, u.turns, !u.seen
	u.look()
	u.seen = true
	flapped = flapped || u.turns != turns
	if !first && u.up == up && u.index == index && !(up && flapped) {
		return
	}
	if !first {
		d.uplinkDown(u, index)
	}
	if u.up {
		d.log.Info("uplink is up", "uplink", u.name)
		ctx, cancel := context.WithCancel(d.ctx)
		u.cancel = cancel
		go d.listen(ctx, u, u.index)
	} else if (first || up) && u.tunnel == nil { // once an absence; a tunnel's own goroutine says it
		d.log.Warn("uplink cannot be used; waiting for it", "uplink", u.name, "why", u.trouble())
	}
}

// uplinkDown forgets what was heard on the link with that index: it may come back leading elsewhere.
func (d *daemon) uplinkDown(u *uplink, index int) {
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
	u.heard, u.rival, u.asked, u.hello = false, false, time.Time{}, wire.Hello{}
	switch {
	case d.edge == nil || index == 0:
	case u.index != index:
		d.edge.Detach(index) // the interface is gone; what was pinned for it as well
	default:
		d.silence(u)
	}
	if index != 0 {
		u.before = nil
		d.lose(u)
	}
}

// silence keeps flows from the uplink, also once there is another one: what is sent to a link that is down waits
// three seconds for its router's answer, and TCP does not send again what it knows to be waiting. What was sent
// before the link was known to be down waits no longer.
func (d *daemon) silence(u *uplink) {
	if err := d.edge.SetUplink(u.index, host.Uplink{}); err != nil {
		d.log.Warn("flows may be sent to an uplink that is lost", "uplink", u.name, "error", err)
	}
	if p := d.placeOn(u.name); p != nil {
		d.sessions.hush(p.Locator)
	}
	waiting, err := netlink.NeighList(u.index, netlink.FAMILY_V6)
	if err != nil {
		d.log.Debug("list the neighbours of an uplink that is lost", "uplink", u.name, "error", err)
	}
	for i := range waiting {
		if waiting[i].State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) != 0 {
			netlink.NeighDel(&waiting[i]) //nolint:errcheck // it went by itself
		}
	}
}

// kernelChanged puts back what somebody took away.
func (d *daemon) kernelChanged() {
	if d.preferred() == nil {
		return
	}
	missing, err := d.kernel.restore()
	for _, m := range missing {
		d.log.Warn("put back what somebody removed", "what", m)
	}
	if err != nil {
		d.log.Warn("cannot restore the host's set-up", "error", err)
	}
}
