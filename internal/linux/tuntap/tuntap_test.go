package tuntap_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/tuntap"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// open makes a device in a namespace until the test ends.
func open(t *testing.T, ns *nstest.NS, name string, kind uint16, offloads ...int) error {
	t.Helper()
	var err error
	ns.Do(func() {
		var fd int
		if fd, err = tuntap.Open(name, kind, offloads...); err == nil {
			t.Cleanup(func() { unix.Close(fd) })
		}
	})
	return err
}

func TestDevicesAreMadeInTheNamespaceOfTheThread(t *testing.T) {
	ns := nstest.New(t, "devices")
	for name, kind := range map[string]uint16{"tap": tuntap.TAP | tuntap.Header, "tun": tuntap.TUN} {
		if err := open(t, ns, name, kind); err != nil {
			t.Fatal(err)
		}
		link, err := ns.Link().LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if ether := len(link.Attrs().HardwareAddr) > 0; ether != (name == "tap") || link.Attrs().RawFlags&unix.IFF_UP != 0 {
			t.Errorf("%s: an Ethernet address %v, flags %#x; want it set down", name, ether, link.Attrs().RawFlags)
		}
	}
}

func TestTheFirstOffloadsThatTheKernelHasAreTaken(t *testing.T) {
	ns := nstest.New(t, "offloads")
	const unknown = 1 << 30
	if err := open(t, ns, "second", tuntap.TAP|tuntap.Header, unknown, unix.TUN_F_CSUM); err != nil {
		t.Error(err)
	}
	if err := open(t, ns, "none", tuntap.TAP|tuntap.Header, unknown); !errors.Is(err, unix.EINVAL) {
		t.Errorf("offloads that no kernel has: %v", err)
	}
	if _, err := ns.Link().LinkByName("none"); err == nil {
		t.Error("the device is there although opening it failed")
	}
}

func TestWhatCannotBeMadeSaysWhy(t *testing.T) {
	ns := nstest.New(t, "refused")
	if err := open(t, ns, "there", tuntap.TAP); err != nil {
		t.Fatal(err)
	}
	if err := open(t, ns, "there", tuntap.TAP); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := open(t, ns, "a-name-that-is-too-long", tuntap.TAP); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a long name: %v", err)
	}
}
