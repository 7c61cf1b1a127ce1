package hostd

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Of two routers on one link the first is kept for as long as it answers, and neither is asked at each HELLO.
func TestTwoRoutersOnOneLink(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.has(t, d, serviceBy("up0"))
	greet := l.rival(t)
	before := l.asked.Load()
	for range 20 {
		greet()
	}
	nstest.Wait(t, "hello.go", func() error {
		if l.asked.Load() == before {
			return fmt.Errorf("the first router was not asked whether it is still there")
		}
		return nil
	})
	if n := l.asked.Load() - before; n >= 20 {
		t.Errorf("the link was asked %d times", n)
	}
	if strings.Contains(d.Output(), "router=r9") {
		t.Errorf("left a router that answers:\n%s", d.Output())
	}
	l.mute.Store(true)
	nstest.Wait(t, "hello.go; what the daemon printed", func() error {
		greet()
		if !strings.Contains(d.Output(), "router=r9") {
			return fmt.Errorf("stays with a router that does not answer")
		}
		return nil
	})
}

// A router that was forgotten goes on to greet its hosts, and to carry what they say. They are told once, and take any other
// router on the link, whoever answers first.
func TestARouterThatWasForgottenIsLeft(t *testing.T) {
	l := newLink(t)
	l.controller.orders = make(chan *apiv1.HostOrder, 1)
	d := l.start(t, nil)
	l.has(t, d, serviceBy("up0"))
	greet := l.rival(t)
	l.listenAt(t, "fe80::99")
	no := &apiv1.Refused{Retry: true, Reason: "it was forgotten", NoRouter: "r1"}
	l.controller.orders <- &apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: no}}
	nstest.Wait(t, "forgotten.go; what the daemon printed", func() error {
		greet()
		if out := d.Output(); !strings.Contains(out, "the router was forgotten") || !strings.Contains(out, "router=r9") {
			return fmt.Errorf("stays with a router that was forgotten")
		}
		return nil
	})
	l.controller.until(t, d, "it joins by the other one", func(r *apiv1.HostReport) bool {
		return r.GetJoin().GetAttachment().GetRouter() == "r9"
	})
	l.has(t, d, serviceBy("up0"))
}

// rival is a second router on the link; it greets when it is told to.
func (l *link) rival(t *testing.T) (greet func()) {
	t.Helper()
	return l.rivalOf(t, 1)
}

// rivalOf is one that speaks a version of the protocol.
func (l *link) rivalOf(t *testing.T, version byte) (greet func()) {
	t.Helper()
	addr := netip.MustParseAddr("fe80::99")
	l.router.Addr(t, "down0", "fe80::99/64")
	zone := fmt.Sprint(l.router.Index(t, "down0"))
	var conn net.PacketConn
	nstest.Wait(t, "ip addr in the router's namespace", func() (err error) {
		l.router.Do(func() { conn, err = net.ListenPacket("udp6", netip.AddrPortFrom(addr.WithZone(zone), 0).String()) })
		return err
	})
	t.Cleanup(func() { conn.Close() })
	h := wire.Hello{Relay: true, RelayPort: uint16(l.port), Name: "r9", Port: "down0"}
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("ff02::1").WithZone(zone), sid.Port))
	b := h.Append(nil)
	b[0] = version
	return func() {
		if _, err := conn.WriteTo(b, to); err != nil {
			t.Error(err)
		}
	}
}

// A router of another version is not taken, and named in the log.
func TestARouterOfAnotherVersionIsNamed(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.has(t, d, serviceBy("up0"))
	greet := l.rivalOf(t, 2)
	l.mute.Store(true)
	nstest.Wait(t, "hello.go; what the daemon printed", func() error {
		greet()
		if !strings.Contains(d.Output(), "fe80::99%up0 is not understood (message of version 2, want 1: not a version that this program speaks): upgrade the older of the two") {
			return fmt.Errorf("nothing is said of a router of another version")
		}
		return nil
	})
	if strings.Contains(d.Output(), "router=r9") {
		t.Errorf("took a router that it does not understand:\n%s", d.Output())
	}
}
