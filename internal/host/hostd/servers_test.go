package hostd

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// TestNobodyTakesNoShareOfAService unless the host's configuration lets him. Attacker: a local user.
func TestNobodyTakesNoShareOfAService(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.program(t, 81) // root's
	l.controller.until(t, d, "port 81 ready, of root", func(r *apiv1.HostReport) bool {
		return told(r, 81, func(g *apiv1.Registration) bool { return g.Ready && g.User == "root" })
	})
	listenAs(t, l, 65534)
	l.controller.until(t, d, "port 80 is nobody's and may not serve", func(r *apiv1.HostReport) bool {
		return told(r, 80, func(g *apiv1.Registration) bool {
			return !g.Ready && !g.Queue && g.User == "nobody" && strings.Contains(g.Reason, `add serve: ["web=nobody"]`)
		})
	})
}

// TestAHostLetsAUserServe.
func TestAHostLetsAUserServe(t *testing.T) {
	l := newLink(t)
	d := l.start(t, func(c *Config) { c.Serve = []string{"web=nobody,root"} })
	l.program(t, 81)
	l.controller.until(t, d, "port 81 ready", ready(81, true))
	listenAs(t, l, 65534)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
}

// listenAs opens a user's socket on port 80 of the service: whose a socket is, its thread's fsuid says.
func listenAs(t *testing.T, l *link, uid int) {
	t.Helper()
	var err error
	l.host.Do(func() {
		unix.SetfsuidRetUid(uid)     // seen below by what the daemon tells
		defer unix.SetfsuidRetUid(0) // the thread ends with this
		var s net.Listener
		if s, err = net.Listen("tcp6", netip.AddrPortFrom(webAddr, 80).String()); err == nil {
			t.Cleanup(func() { s.Close() })
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAListenerOnAnotherDeviceIsNoInstance: nothing that comes by the uplink would find it.
func TestAListenerOnAnotherDeviceIsNoInstance(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.program(t, 81)
	l.controller.until(t, d, "port 81 ready", ready(81, true))
	listenOn := func(device string, port uint16) {
		t.Helper()
		lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
			raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
			return err
		}}
		var s net.Listener
		var err error
		l.host.Do(func() { s, err = lc.Listen(t.Context(), "tcp6", netip.AddrPortFrom(webAddr, port).String()) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
	}
	listenOn("lo", 80)
	l.controller.until(t, d, "port 80 is no instance", func(r *apiv1.HostReport) bool {
		return told(r, 80, func(g *apiv1.Registration) bool {
			return !g.Ready && strings.Contains(g.Reason, "bound to the device lo")
		})
	})
	listenOn("up0", 82)
	l.controller.until(t, d, "port 82 ready, on the uplink", ready(82, true))
}
