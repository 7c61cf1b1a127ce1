package frr

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// watched gives the changes of a namespace's table.
func watchedNS(t *testing.T, ns *nstest.NS) told {
	t.Helper()
	c := make(told, 1000)
	w, err := NewWatch(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), c.tell, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return c
}

func TestRoutesOfEachKindAreSeenInTheKernel(t *testing.T) {
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "e0", b, "e0")
	nstest.Veth(t, a, "e1", b, "e1")
	a.Addr(t, "e0", "fd00:1::1/64")
	a.Addr(t, "e1", "fd00:2::1/64")
	a.Addr(t, "e0", "10.0.0.1/24")
	c := watchedNS(t, a)
	e0, e1 := a.Index(t, "e0"), a.Index(t, "e1")
	for _, x := range []struct {
		route string
		want  string
	}{
		{"-6 route add fd00:a::/64 via fd00:1::2", fmt.Sprintf("fd00:a::/64 unicast [via fd00:1::2 dev %d weight 1]", e0)},
		{"-6 route append fd00:a::/64 via fd00:2::2", fmt.Sprintf("fd00:a::/64 unicast [via fd00:1::2 dev %d weight 1 via fd00:2::2 dev %d weight 1]", e0, e1)},
		{"-6 route del fd00:a::/64 via fd00:1::2", fmt.Sprintf("fd00:a::/64 unicast [via fd00:2::2 dev %d weight 1]", e1)},
		{"-6 route add blackhole fd00:b::/64", "fd00:b::/64 blackhole []"},
		{"-6 route add prohibit fd00:c::/64", "fd00:c::/64 prohibited []"},
		{"-6 route add unreachable default", "::/0 unreachable []"},
		{"route add 192.0.2.0/24 via 10.0.0.2 metric 20", fmt.Sprintf("192.0.2.0/24 unicast [via 10.0.0.2 dev %d weight 1]", e0)},
		{"route add 192.0.2.0/24 via 10.0.0.3 metric 10", fmt.Sprintf("192.0.2.0/24 unicast [via 10.0.0.3 dev %d weight 1]", e0)},
		{"route add 198.51.100.0/24 via inet6 fd00:1::9", fmt.Sprintf("198.51.100.0/24 unicast [via fd00:1::9 dev %d weight 1]", e0)},
		{"nexthop add id 7 via fd00:2::7 dev e1", ""},
		{"nexthop add id 8 via fd00:1::8 dev e0", ""},
		{"nexthop add id 9 group 7,3/8", ""},
		{"-6 route add fd00:d::/64 nhid 9", fmt.Sprintf("fd00:d::/64 unicast [via fd00:1::8 dev %d weight 1 via fd00:2::7 dev %d weight 3]", e0, e1)},
	} {
		a.Run(t, append([]string{"ip"}, strings.Fields(x.route)...)...)
		if x.want != "" {
			c.wait(t, x.want, func(c Change) bool { return c.String() == x.want })
		}
	}
}

// The kernel says nothing of the routes for IPv4 that go with their interface.
func TestRoutesGoWithTheirInterface(t *testing.T) {
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "e0", b, "e0")
	a.Addr(t, "e0", "10.0.0.1/24")
	a.Run(t, "ip", "route", "add", "192.0.2.0/24", "via", "10.0.0.2")
	c := watchedNS(t, a)
	c.waitFor(t, "192.0.2.0/24", Unicast)
	a.Down(t, "e0")
	c.waitFor(t, "192.0.2.0/24", Gone)
}

// More routes than the socket holds notifications of.
func TestATableIsWholeAfterNotificationsWereLost(t *testing.T) {
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "e0", b, "e0")
	a.Addr(t, "e0", "fd00:1::1/64")
	const n = 20000
	var batch strings.Builder
	for i := range n {
		fmt.Fprintf(&batch, "route add fd00:%x:%x::/64 via fd00:1::2\n", 0x100+i>>8, i&0xff)
	}
	file := filepath.Join(t.TempDir(), "routes")
	if err := os.WriteFile(file, []byte(batch.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	seen, all := map[netip.Prefix]bool{}, make(chan struct{})
	w, err := NewWatch(fmt.Sprintf("/proc/self/fd/%d", a.Fd()), func(changes []Change) {
		for _, c := range changes {
			seen[c.Prefix] = c.Kind == Unicast
		}
		if len(seen) == n+2 { // and two of the interface
			close(all)
		}
	}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a.Run(t, "ip", "-6", "-batch", file)
	select {
	case <-all:
	case <-time.After(nstest.Deadline):
		t.Fatal("routes are missing")
	}
}
