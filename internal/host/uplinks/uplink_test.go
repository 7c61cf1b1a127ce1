package uplinks

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// An address that the kernel still asks the link about is no reason to wait.
func TestATentativeAddressIsUsedAtOnce(t *testing.T) {
	ns := nstest.New(t, "host")
	peer := nstest.New(t, "peer")
	ns.Sysctl(t, "net/ipv6/conf/default/accept_dad", "1")
	nstest.Veth(t, ns, "up0", peer, "down0")
	ns.Sysctl(t, "net/ipv6/conf/up0/accept_dad", "1")
	dev := ns.Dev(t, "up0")
	ns.Do(func() { linkLocal(dev) })
	all, err := ns.Link().AddrList(dev, netlink.FAMILY_V6)
	if err != nil || len(all) != 1 || all[0].Flags&unix.IFA_F_NODAD == 0 {
		t.Fatalf("addresses %v, %v: want one that nobody is asked about", all, err)
	}
	nstest.Wait(t, "ip -6 route show table local", func() (err error) {
		ns.Do(func() {
			if a := linkLocal(dev); !a.IsValid() {
				err = errors.New("no address that can be used")
			}
		})
		return err
	})
}
