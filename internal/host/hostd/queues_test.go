package hostd

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestASlowProgramStaysReady: it takes a quarter of a second for each of sixteen connections that come at once.
func TestASlowProgramStaysReady(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	l.program(t, 81) // waits until sockets may have a service's address
	l.controller.until(t, d, "port 81 ready", ready(81, true))
	slow := l.host.Listen(t, "tcp6", netip.AddrPortFrom(webAddr, 80).String())
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	const clients = 16
	for range clients {
		dialInside(t, l, netip.AddrPortFrom(webAddr, 80))
	}
	for range clients {
		c, err := slow.Accept()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond) // it works
		c.Close()
	}
	for {
		select {
		case r := <-l.controller.reports:
			if ready(80, false)(r) {
				t.Fatalf("reported while it accepted a connection each 250 ms: %v", r)
			}
			continue
		default:
		}
		break
	}
}

// TestAProgramThatHangsIsTold, and that it may be slow, which a stopped one is not.
func TestAProgramThatHangsIsTold(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	p := l.program(t, 81)
	l.controller.until(t, d, "port 81 ready", ready(81, true))
	l.host.Listen(t, "tcp6", netip.AddrPortFrom(webAddr, 80).String())
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	dialInside(t, l, netip.AddrPortFrom(webAddr, 80))
	l.controller.until(t, d, "port 80 is late, and may be slow", func(r *apiv1.HostReport) bool {
		return told(r, 80, func(g *apiv1.Registration) bool { return !g.Ready && g.Queue && g.Slow })
	})
	p.Signal(syscall.SIGSTOP)
	defer p.Signal(syscall.SIGCONT)
	for range 8 { // its two threads of Go may have taken some before they stopped
		dialInside(t, l, netip.AddrPortFrom(webAddr, 81))
	}
	l.controller.until(t, d, "port 81 is stopped, and not slow", func(r *apiv1.HostReport) bool {
		return told(r, 81, func(g *apiv1.Registration) bool { return !g.Ready && g.Queue && !g.Slow })
	})
}

// TestAnInstanceIsOutOnlyWhereNoListenerWorks: of two processes on one port by SO_REUSEPORT one stops, then the other.
func TestAnInstanceIsOutOnlyWhereNoListenerWorks(t *testing.T) {
	l := newLink(t)
	d := l.start(t, nil)
	workers := []*nstest.Proc{l.program(t, 80), l.program(t, 80)}
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	stop := func(p *nstest.Proc) {
		p.Signal(syscall.SIGSTOP)
		for range 32 { // each is of either listener; Go may have taken some before it stopped
			dialInside(t, l, netip.AddrPortFrom(webAddr, 80))
		}
	}
	stop(workers[0])
	defer workers[0].Signal(syscall.SIGCONT)
	l.controller.until(t, d, "1 of 2 listeners works", func(r *apiv1.HostReport) bool {
		return told(r, 80, func(g *apiv1.Registration) bool {
			if !g.Ready {
				t.Fatalf("reported as %v while one of two works", g)
			}
			return g.Working == 1 && g.Listeners == 2
		})
	})
	stop(workers[1])
	defer workers[1].Signal(syscall.SIGCONT)
	l.controller.until(t, d, "no listener works", func(r *apiv1.HostReport) bool {
		return told(r, 80, func(g *apiv1.Registration) bool { return !g.Ready && g.Queue && g.Listeners == 0 })
	})
	for _, p := range workers {
		p.Signal(syscall.SIGCONT)
	}
	l.controller.until(t, d, "all work", func(r *apiv1.HostReport) bool {
		return told(r, 80, func(g *apiv1.Registration) bool { return g.Ready && g.Listeners == 0 })
	})
}

// told reports whether a report holds such an entry for the port.
func told(r *apiv1.HostReport, port uint32, such func(*apiv1.Registration) bool) bool {
	for _, e := range r.GetDelta().GetEntries() {
		if e.Port == port && such(e) {
			return true
		}
	}
	return false
}

// dialInside connects to a program of the host from the host, as ready checks do.
func dialInside(t *testing.T, l *link, to netip.AddrPort) net.Conn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, routing.LocalMark) })
		return err
	}}
	var c net.Conn
	var err error
	l.host.Do(func() { c, err = dialer.DialContext(context.Background(), "tcp6", to.String()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
