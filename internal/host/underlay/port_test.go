package underlay

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// make makes and starts a port in a namespace.
func makeIn(ns *nstest.NS, p Port) (err error) {
	ns.Do(func() {
		if err = p.Make(-1); err == nil {
			err = p.Start()
		}
	})
	return err
}

// VXLAN carries what it says over both protocols.
func TestVXLANOverBothProtocols(t *testing.T) {
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	nstest.Veth(t, a, "u0", b, "u0")
	for i, ends := range [][2]string{{"192.0.2.1/24", "192.0.2.2/24"}, {"2001:db8::1/64", "2001:db8::2/64"}} {
		from, to := netip.MustParsePrefix(ends[0]), netip.MustParsePrefix(ends[1])
		a.Addr(t, "u0", ends[0])
		b.Addr(t, "u0", ends[1])
		p := Port{Name: fmt.Sprintf("sct%d", i), Number: uint32(70 + i), Local: from.Addr(), Remote: to.Addr(), UDP: uint16(23729 + 10*i),
			MTU: VXLAN.Fit(1500, to.Addr()), Whole: true, Note: Note("h", "x", VXLAN)}
		far := p
		far.Local, far.Remote = p.Remote, p.Local
		if err := makeIn(a, p); err != nil {
			t.Fatal(err)
		}
		if err := makeIn(b, far); err != nil {
			t.Fatal(err)
		}
		var err error
		var at netip.Addr
		b.Do(func() { at = AwaitLinkLocal(p.Name) })
		a.Do(func() {
			var echo *Echo
			if echo, err = OpenEcho(p.Name); err != nil {
				return
			}
			defer echo.Close()
			if _, err = echo.Reply(context.Background(), at, nstest.Deadline); err == nil {
				_, err = echo.Ask(at, p.MTU, nstest.Deadline)
			}
		})
		if err != nil {
			t.Errorf("%s: %d bytes: %v", ends[0], p.MTU, err)
		}
		var list []Port
		if a.Do(func() { list, err = Ports() }); err != nil || len(list) != i+1 || list[i] != p {
			t.Errorf("the next daemon finds %+v, %v; want %+v", list, err, p)
		}
	}
}

func TestATakenPortOfVXLANIsSaidSo(t *testing.T) {
	ns := nstest.New(t, "a")
	ns.Addr(t, "lo", "192.0.2.1/32")
	ns.ListenPacket(t, "udp", ":23729")
	err := makeIn(ns, Port{Name: "sct0", Number: 7, Local: netip.MustParseAddr("192.0.2.1"), Remote: netip.MustParseAddr("192.0.2.2"), UDP: 23729, MTU: 1450})
	if err == nil || !strings.Contains(err.Error(), "another program of this machine has UDP port 23729") {
		t.Errorf("it says %v", err)
	}
}

func TestAnInterfaceWithoutAnAddressIsNotWaitedForLong(t *testing.T) {
	ns := nstest.New(t, "a")
	var ll netip.Addr
	ns.Do(func() { ll = AwaitLinkLocal("nothing") })
	if ll.IsValid() {
		t.Errorf("an interface that is not there has the address %v", ll)
	}
}
