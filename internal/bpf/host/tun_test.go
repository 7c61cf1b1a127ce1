package host

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/tuntap"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// tun makes an interface without an Ethernet header, as tunnels and WireGuard have.
func tun(t *testing.T, ns *nstest.NS, dev string) *os.File {
	t.Helper()
	var f *os.File
	ns.Do(func() {
		fd, err := tuntap.Open(dev, tuntap.TUN)
		must(t, err)
		f = os.NewFile(uintptr(fd), dev)
	})
	t.Cleanup(func() { f.Close() })
	must(t, ns.Link().LinkSetMTU(ns.Dev(t, dev), 1400))
	ns.Up(t, dev)
	return f
}

// tunnel joins two of them.
func tunnel(a, b *os.File) {
	for _, way := range [][2]*os.File{{a, b}, {b, a}} {
		go func() {
			buf := make([]byte, 1<<16)
			for {
				n, err := way[0].Read(buf)
				if err != nil {
					return
				}
				way[1].Write(buf[:n])
			}
		}()
	}
}

// behindTunnel joins a host whose uplink is a tunnel to a plain router beside ours.
func (n *testNetwork) behindTunnel(t *testing.T, number uint16) *testHost {
	t.Helper()
	h := &testHost{NS: nstest.New(t, "tunnelled"), locator: space.Locator(0x100 | number), vid: space.Identity(uint64(number))}
	gw := nstest.New(t, "gateway")
	gw.Forward(t)
	tunnel(tun(t, h.NS, "up"), tun(t, gw, "down"))
	nstest.Veth(t, gw, "out", n.router, "gw")
	n.router.Route(t, h.locator.Prefix().String(), gw.LinkLocal(t, "out").String(), "gw")
	n.router.Do(func() { must(t, n.resolver.Attach(n.router.Index(t, "gw"))) })
	for _, p := range []netip.Prefix{space.AS, space.Services} {
		gw.Route(t, p.String(), n.router.LinkLocal(t, "gw").String(), "out")
	}
	must(t, gw.Link().RouteReplace(&netlink.Route{Dst: ipNet(h.locator.Prefix()), LinkIndex: gw.Index(t, "down")}))
	h.routes(t, nil)
	h.Do(func() {
		var err error
		if h.edge, err = Open(Config{Space: space, Identity: h.vid}); err != nil {
			t.Fatalf("%+v", err)
		}
		must(t, h.edge.Attach(h.Index(t, "up")))
	})
	t.Cleanup(func() { h.edge.Close(false) })
	must(t, h.edge.SetUplink(h.Index(t, "up"), Uplink{Locator: h.locator, MTU: 1400}))
	must(t, h.edge.AcceptLocator(h.locator, true))
	return h
}

// An uplink without an Ethernet header carries flows both ways, answers what it refuses, and asks again.
func TestUplinkWithoutEthernetHeader(t *testing.T) {
	n := newNetwork(t)
	far, near := n.behindTunnel(t, 1), n.host(t, "near", 2, Config{})
	counters(t, far, near)
	mail := sid.Triple{Service: dns, Proto: sid.TCP, Port: 25}
	n.serve(t, webTCP, near)
	n.serve(t, mail, far)
	done := handle(far.edge, far.NS)
	t.Cleanup(func() { far.edge.Close(false); <-done })
	go echoServer(near.Listen(t, "tcp6", at(webAddr, 80)))
	go echoServer(far.Listen(t, "tcp6", at(dnsAddr, 25)))
	check := n.sniff(t, near)
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	for _, c := range []struct {
		from *testHost
		to   string
	}{{far, at(webAddr, 80)}, {near, at(dnsAddr, 25)}} {
		conn, err := c.from.dial(c.to)
		must(t, err)
		defer conn.Close()
		within(t, conn)
		go func() { conn.Write(sent); conn.(*net.TCPConn).CloseWrite() }()
		if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%s to %s: %d of %d bytes came back: %v", c.from.Name, c.to, len(got), len(sent), err)
		}
	}
	check()
	for _, c := range []struct {
		from *testHost
		to   string
		want syscall.Errno
	}{{far, at(nowhere, 80), syscall.ENETUNREACH}, {far, at(webAddr, 81), syscall.ECONNREFUSED}, {near, at(dnsAddr, 26), syscall.ECONNREFUSED}} {
		if conn, err := c.from.dial(c.to); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %v %v, want %v", c.from.Name, c.to, conn, err, c.want)
		}
	}
}

// A table without room takes no new flow, says so, keeps those that it has, and recovers when flows end.
func TestFullTable(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{MaxFlows: 4}), n.host(t, "server", 2, Config{})
	counters(t, server)
	n.serve(t, webTCP, server)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	var open []net.Conn
	for range 4 {
		c, err := client.dial(at(webAddr, 80))
		must(t, err)
		defer c.Close()
		within(t, c)
		open = append(open, c)
	}
	var fd int
	client.Do(func() {
		var err error
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		unix.Connect(fd, &unix.SockaddrInet6{Addr: webAddr.As16(), Port: 80})
	})
	unix.Close(fd)
	if all, err := client.edge.Counters(); err != nil || all["drop_full"] != 1 {
		t.Errorf("drop_full = %d %v, want 1: the SYN that found no room", all["drop_full"], err)
	}
	for _, c := range open {
		exchange(t, c, "still here")
		c.(*net.TCPConn).CloseWrite()
		if rest, err := io.ReadAll(c); err != nil {
			t.Errorf("the end of a flow: %q %v", rest, err)
		}
	}
	nstest.Wait(t, "the ended flows to go", func() error { // the last ACKs may still be under way
		older(t, client.edge, endedIdleTight)
		if r, err := client.edge.Sweep(nil); err != nil || r.Flows != 0 {
			return fmt.Errorf("swept %+v: %w", r, err)
		}
		return nil
	})
	c, err := client.dial(at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	exchange(t, c, "room again")
}
