package hostd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// How often a host without a router asks for one: quickly at first, then once a second.
const (
	solicitFirst = 50 * time.Millisecond
	solicitLast  = time.Second
)

// An uplink is one interface that may lead to a router.
type uplink struct {
	name   string
	index  int
	up     bool // there, switched on and with carrier
	mac    []byte
	mtu    int
	local  netip.Addr         // link-local
	said   string             // the last that was logged about it
	cancel context.CancelFunc // of the goroutine that listens for HELLO; nil without one
	router netip.Addr
	hello  wire.Hello
	heard  bool
	seen   bool // its state was looked at
}

// look reads the state of the interface and reports whether it can be used.
func (u *uplink) look() bool {
	link, err := netlink.LinkByName(u.name)
	if err != nil {
		u.up, u.index = false, 0
		return false
	}
	a := link.Attrs()
	if a.Index != u.index {
		u.heard = false
	}
	u.index, u.mac, u.mtu = a.Index, a.HardwareAddr, a.MTU
	u.up = a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&unix.IFF_LOWER_UP != 0
	u.local = linkLocal(link)
	return u.up
}

// linkLocal is the interface's own address that is ready to be used.
func linkLocal(link netlink.Link) netip.Addr {
	all, _ := netlink.AddrList(link, netlink.FAMILY_V6)
	for _, a := range all {
		ip, ok := netip.AddrFromSlice(a.IP)
		if ok && ip.IsLinkLocalUnicast() && a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
			return ip
		}
	}
	return netip.Addr{}
}

// trouble says why the uplink cannot be used.
func (u *uplink) trouble() string {
	switch {
	case u.index == 0:
		return "there is no such interface"
	case !u.up:
		return "it is down or has no carrier"
	case !u.heard:
		return "no router answers there"
	}
	return ""
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

// kernelChanged looks at the uplinks and puts back what somebody took away.
func (d *daemon) kernelChanged() {
	for _, u := range d.uplinks {
		d.checkUplink(u)
	}
	if d.place == nil {
		return
	}
	u := d.uplink(d.place.Uplink)
	if u == nil || !u.up {
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

// checkUplink notices that an uplink came, went or lost its carrier.
func (d *daemon) checkUplink(u *uplink) {
	index, up, first := u.index, u.up, !u.seen
	u.look()
	u.seen = true
	if !first && u.up == up && u.index == index && u.up == (u.cancel != nil) {
		return
	}
	if d.edge != nil && index != 0 && u.index != index {
		d.edge.Detach(index) // the interface is gone; what was pinned for it as well
	}
	if u.cancel != nil && (!u.up || u.index != index) {
		u.cancel()
		u.cancel, u.heard = nil, false
	}
	if u.up {
		d.uplinkUp(u, index)
	} else {
		d.log.Warn("uplink cannot be used; waiting for it", "uplink", u.name, "why", u.trouble())
	}
}

func (d *daemon) uplinkUp(u *uplink, before int) {
	ctx, cancel := context.WithCancel(d.ctx)
	u.cancel = cancel
	index := u.index
	go d.listen(ctx, u, index)
	d.log.Info("uplink is up", "uplink", u.name)
	if d.place != nil && d.place.Uplink == u.name && d.edge != nil {
		// Another interface of the same name, or the old one without its addresses: all anew.
		if err := d.settle(d.place); err != nil {
			d.log.Warn("cannot set the uplink up again", "uplink", u.name, "error", err)
		}
	}
}

// listen asks for a router and hears HELLOs until ctx ends.
func (d *daemon) listen(ctx context.Context, u *uplink, index int) {
	for ctx.Err() == nil {
		err := d.converse(ctx, u, index)
		if ctx.Err() != nil {
			return
		}
		d.post(func() { d.say(u, fmt.Sprintf("cannot ask for a router: %v", err)) })
		select {
		case <-ctx.Done():
		case <-time.After(solicitLast):
		}
	}
}

// say logs a trouble of the uplink once.
func (d *daemon) say(u *uplink, what string) {
	if u.said != what {
		u.said = what
		d.log.Warn(what, "uplink", u.name)
	}
}

func (d *daemon) converse(ctx context.Context, u *uplink, index int) error {
	conn, err := openLink(ctx, u.name)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	heard := make(chan struct{})
	defer close(heard)
	go d.solicit(ctx, conn, u, index)
	buf := make([]byte, wire.MaxLen+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		m, err := wire.Parse(buf[:n])
		if h, ok := m.(wire.Hello); ok && err == nil && from.Addr().IsLinkLocalUnicast() {
			d.post(func() { d.heardHello(u, index, from.Addr().WithZone(""), h) })
		}
	}
}

// openLink opens the protocol's port on one interface.
func openLink(ctx context.Context, dev string) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		c.Control(func(fd uintptr) {
			err = errors.Join(unix.BindToDevice(int(fd), dev),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 1))
		})
		return err
	}}
	conn, err := lc.ListenPacket(ctx, "udp6", fmt.Sprintf("[::]:%d", sid.Port))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// solicit asks until a router was heard, then waits for the periodic HELLOs.
func (d *daemon) solicit(ctx context.Context, conn *net.UDPConn, u *uplink, index int) {
	all := netip.AddrPortFrom(netip.MustParseAddr("ff02::1").WithZone(strconv.Itoa(index)), sid.Port)
	wait := solicitFirst
	for tries := 0; ctx.Err() == nil; tries++ {
		var known bool
		if !d.call(ctx, func() { known = u.heard }) || known {
			return
		}
		if tries == 5 {
			d.post(func() { d.say(u, "no router answers; asking on") })
		}
		m := wire.Solicit{Header: wire.Header{Nonce: nonce()}, Name: d.cfg.Name}
		conn.WriteToUDPAddrPort(m.Append(nil), all) // fails while the link-local address is tentative
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, solicitLast)
	}
}

func nonce() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// heardHello notes the router of the uplink; a new one, or a new way to the controller, means to join
// anew.
func (d *daemon) heardHello(u *uplink, index int, from netip.Addr, h wire.Hello) {
	if u.index != index || !h.Relay && d.cfg.Controller == "" {
		return
	}
	if !u.look() || !u.local.IsValid() {
		return
	}
	h.Header = wire.Header{}
	if u.heard && u.router == from && u.hello == h {
		return
	}
	h0, again := u.hello, u.heard && u.router == from
	u.router, u.hello, u.heard, u.said = from, h, true, ""
	if again && h0.Name == h.Name && h0.Port == h.Port && h0.RelayPort == h.RelayPort {
		return // only its flags or locator
	}
	d.log.Info("found a router", "uplink", u.name, "router", h.Name, "port", h.Port, "at", from)
	if d.active() == u {
		d.control.attach(attachment{uplink: u.name, router: from, endpoint: d.endpoint(u), Attachment: &apiv1.Attachment{
			Router: h.Name, Port: h.Port, LinkLocal: u.local.String(), Mac: u.mac, Mtu: uint32(u.mtu),
		}})
	}
}

// active is the uplink that the host joins by: the first that leads to a router.
func (d *daemon) active() *uplink {
	for _, u := range d.uplinks {
		if u.up && u.heard {
			return u
		}
	}
	return nil
}

// endpoint is where the controller is reached from the uplink. The zone is the interface's number:
// package net remembers names for a minute, also when another interface has the name by then.
func (d *daemon) endpoint(u *uplink) string {
	if d.cfg.Controller != "" {
		return d.cfg.Controller
	}
	return fmt.Sprintf("http://[%s%%25%d]:%d", u.router, u.index, u.hello.RelayPort)
}
