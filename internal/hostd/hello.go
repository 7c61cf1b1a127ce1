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

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// How often a host without a router asks for one: quickly at first, then once a second.
const (
	solicitFirst = 20 * time.Millisecond
	solicitLast  = time.Second
	// silentTries is when a router that does not answer is taken for one whose daemon is away: it
	// forwards all the same.
	silentTries = 4
	// rivalWait is how long the router of before has to answer when another one greets; it is asked at most
	// every rivalEvery.
	rivalWait  = 100 * time.Millisecond
	rivalEvery = 3 * time.Second
)

var allNodes = netip.MustParseAddr("ff02::1")

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
	go func() {
		if err := meet(ctx, index); err != nil && ctx.Err() == nil {
			d.log.Debug("the router is asked for its address", "uplink", u.name, "error", err)
		}
	}()
	go d.solicit(ctx, conn, u, index)
	buf := make([]byte, wire.MaxLen+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		m, err := wire.Parse(buf[:n])
		if errors.Is(err, wire.ErrVersion) && from.Addr().IsLinkLocalUnicast() {
			d.post(func() { d.say(u, otherVersion(from.Addr(), err)) })
			continue
		}
		if h, ok := m.(wire.Hello); ok && err == nil && from.Addr().IsLinkLocalUnicast() {
			d.post(func() {
				if ctx.Err() == nil {
					d.heardHello(ctx, conn, u, from.Addr().WithZone(""), h)
				}
			})
		}
	}
}

// otherVersion is what is said of messages that only another version understands; they are ignored.
func otherVersion(from netip.Addr, err error) string {
	return fmt.Sprintf("%v is not understood (%v): upgrade the older of the two", from, err)
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
	wait := solicitFirst
	for tries := 1; ctx.Err() == nil; tries++ {
		d.ask(conn, index)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		var known bool
		if !d.call(ctx, func() { known = d.unheard(ctx, u, tries) }) || known {
			return
		}
		wait = min(2*wait, solicitLast)
	}
}

// unheard reports whether a router answered meanwhile, and makes do without after some tries.
func (d *daemon) unheard(ctx context.Context, u *uplink, tries int) (known bool) {
	if u.heard || ctx.Err() != nil {
		return true
	}
	if tries == silentTries {
		d.say(u, "no router answers; asking on")
		d.presume(u, u.router)
	}
	return false
}

// ask sends SOLICIT to the link.
func (d *daemon) ask(conn *net.UDPConn, index int) {
	m := wire.Solicit{Header: wire.Header{Nonce: nonce()}, Name: d.cfg.Name}
	to := netip.AddrPortFrom(allNodes.WithZone(strconv.Itoa(index)), sid.Port)
	conn.WriteToUDPAddrPort(m.Append(nil), to) //nolint:errcheck // it is asked again
}

func nonce() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// heardHello notes the router of the uplink. Where two greet on one link the first is kept as long as it
// answers.
func (d *daemon) heardHello(ctx context.Context, conn *net.UDPConn, u *uplink, from netip.Addr, h wire.Hello) {
	if !h.Relay && d.controllers == nil {
		return
	}
	if d.checkUplink(u, false); ctx.Err() != nil {
		return // the link came back before the kernel said that it went; asked anew
	}
	h.Header = wire.Header{}
	if !u.heard || u.router == from {
		u.rival = false
		d.follows(u, from, h)
		return
	}
	if time.Since(u.asked) < rivalEvery {
		return
	}
	u.rival, u.asked = true, time.Now()
	d.ask(conn, u.index)
	time.AfterFunc(rivalWait, func() {
		d.post(func() {
			if ctx.Err() == nil && u.rival {
				u.rival = false
				d.follows(u, from, h)
			}
		})
	})
}

// follows takes the router for the uplink's; a new one, or a new way to the controller, means to attach
// anew.
func (d *daemon) follows(u *uplink, from netip.Addr, h wire.Hello) {
	if u.heard && u.router == from && u.hello == h {
		return
	}
	h0, again := u.hello, u.heard && u.router == from
	u.router, u.hello, u.heard, u.said, u.before = from, h, true, "", nil
	if again && h0.Name == h.Name && h0.Port == h.Port && h0.RelayPort == h.RelayPort {
		return // only its flags or locator
	}
	d.log.Info("found a router", "uplink", u.name, "router", h.Name, "port", h.Port, "at", from)
	u.bid = nil
	if p := d.placeOn(u.name); p != nil && p.sameRouter(h) {
		d.presume(u, from)
	}
	d.attend()
}

// presume goes on at the place that the uplink had, although the network did not confirm it yet.
func (d *daemon) presume(u *uplink, router netip.Addr) {
	p := d.placeOn(u.name)
	if p == nil || p.link != lost || !router.IsValid() {
		return
	}
	back := *p
	back.link, back.Index, back.Router = presumed, u.index, router
	if err := d.settle(d.home, d.placesWith(back)); err != nil {
		d.log.Warn("cannot set the uplink up again", "uplink", u.name, "error", err)
	}
}

// endpoint is where the controller is reached from the uplink. The zone is the interface's number:
// package net remembers names for a minute, also when another interface has the name by then.
func (d *daemon) endpoint(u *uplink) string {
	if d.controllers != nil {
		return d.going
	}
	return fmt.Sprintf("http://[%s%%25%d]:%d", u.router, u.index, u.hello.RelayPort)
}
