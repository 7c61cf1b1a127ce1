package hostd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/internal/tests/nstest"
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
	identity := space.Identity(l.controller.until(t, d, "join", joins).GetJoin().Identity)
	rules := []string{"iif lo ipproto udp lookup 23728", "iif lo ipproto ipv6-icmp lookup 23728", fmt.Sprintf("from %v iif lo ipproto tcp unreachable", identity), "to fd5c::/32 iif lo ipproto tcp lookup 23728"}
	l.has(t, d, append(rules, serviceBy("up0"), "throw fd5c::/32")...)
	l.host.Down(t, "up0")
	if out, err := l.host.Try("ip", "-6", "route", "get", "fd5c::1:1:2:3", "ipproto", "tcp", "from", identity.String()); err == nil || !strings.Contains(out, "unreachable") {
		t.Errorf("what a connection sends, unplugged, goes by %s%v; want an error: the kernel's TCP would believe it sent", out, err)
	}
	for range rules {
		l.host.Run(t, "ip", "-6", "rule", "del", "pref", "56495")
	}
	l.host.Up(t, "up0")
	l.has(t, d, append(rules, serviceBy("up0"))...)
}

// A host that is between two uplinks refuses no connect(): its SYN is sent again by the one that comes.
func TestConnectWaitsForTheNextUplink(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up0"))
	l.host.Down(t, "up0")
	const to = "[fd5c::1:1:2:3]:69"
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go l.host.Do(func() {
		var dialer net.Dialer
		_, err := dialer.DialContext(ctx, "tcp6", to)
		ended <- err
	})
	again := regexp.MustCompile(regexp.QuoteMeta(to) + `\s+timer:\(on,[^,]*,[1-9]`)
	nstest.Wait(t, "ss -tno in the host's namespace", func() error {
		if out := l.host.Run(t, "ss", "-Htno", "state", "syn-sent"); !again.MatchString(out) && len(ended) == 0 {
			return fmt.Errorf("no connection to %s has sent its second SYN: %q", to, out)
		}
		return nil
	})
	wire := l.router.Frames(t, "down0")
	l.host.Up(t, "up0")
	if len(ended) > 0 {
		t.Fatalf("connect, unplugged: %v; want that it waits", <-ended)
	}
	wire.Next(t, "a SYN", func(frame []byte) bool { // an Ethernet frame of IPv6 and TCP
		return len(frame) > 67 && frame[20] == unix.IPPROTO_TCP && frame[56] == 0 && frame[57] == 69 && frame[67]&2 != 0
	})
	cancel()
	if err := <-ended; errors.Is(err, syscall.ENETUNREACH) {
		t.Error(err)
	}
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
		all, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Dst: routing.IPNet(netip.MustParsePrefix("fd5d:0:1::/48"))}, netlink.RT_FILTER_DST)
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
