package hostd

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/nstest"
)

// A program that sends while the host is unplugged is not told: its datagram is lost, and it asks again.
func TestDatagramsAreLostQuietlyWithoutAnUplink(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up0"))
	for _, to := range []string{"[fd5c::1:1:2:3]:69", "[fd5d:0:1:201::1]:69"} {
		c, err := l.host.Dial("udp6", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l.host.Down(t, "up0")
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("a datagram to %s, unplugged: %v", to, err)
		}
		l.host.Up(t, "up0")
		l.has(t, d, serviceBy("up0"))
	}
}

// The kernel's TCP is told, so that it keeps what it cannot send.
func TestConnectionsAreToldThatThereIsNoUplink(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up0"), "iif lo ipproto udp lookup 23728", "throw fd5c::/32")
	l.host.Down(t, "up0")
	if c, err := l.host.Dial("tcp6", "[fd5c::1:1:2:3]:69"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("connect, unplugged: %v, %v; want ENETUNREACH", c, err)
	}
	l.host.Run(t, "ip", "-6", "rule", "del", "pref", "56495")
	l.host.Run(t, "ip", "-6", "rule", "del", "pref", "56495")
	l.host.Up(t, "up0")
	l.has(t, d, serviceBy("up0"), "iif lo ipproto udp lookup 23728", "iif lo ipproto ipv6-icmp lookup 23728")
}

// A socket that sent while there was no route keeps the hole for a route, until it is told: else it would send
// nowhere for ever.
func TestConnectedSocketsComeBackWithTheRoute(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up0"))
	c, err := l.host.Dial("udp6", "[fd5d:0:1:201::1]:69")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wire := l.host.Frames(t, "up0")
	sent := func(text string) func([]byte) bool {
		return func(frame []byte) bool { return bytes.HasSuffix(frame, []byte(text)) }
	}
	l.host.Do(func() { // at once: the daemon puts the route back 5 ms later
		all, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Dst: ipNet(netip.MustParsePrefix("fd5d:0:1::/48"))}, netlink.RT_FILTER_DST)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].Gw != nil {
				err = errors.Join(err, netlink.RouteDel(&all[i]))
			}
		}
		if _, failed := c.Write([]byte("lost")); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
	})
	l.has(t, d, "fd5d:0:1::/48 via")
	nstest.Wait(t, "ip -6 route in the host", func() error {
		if _, err := c.Write([]byte("not lost")); err != nil {
			return err
		}
		if !slices.ContainsFunc(wire.Drain(t), sent("not lost")) {
			return errors.New("nothing left the host")
		}
		return nil
	})
}
