//go:build kernels

// For kernels with VRFs: scripts/kernels.sh compiles it, with the tag, and boots one.

package hostd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// enslave puts interfaces of the host into a VRF.
func (l *link) enslave(t *testing.T, vrf string, devs ...string) {
	t.Helper()
	err := l.host.Link().LinkAdd(&netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Name: vrf}, Table: 100})
	if err != nil {
		t.Fatalf("no VRF (CONFIG_NET_VRF; try ip link add red type vrf table 100): %v", err)
	}
	l.host.Up(t, vrf)
	for _, dev := range devs {
		l.host.Run(t, "ip", "link", "set", dev, "master", vrf)
	}
}

// onDevice has sockets bound to a device.
func onDevice(device string) func(_, _ string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
		return err
	}
}

// segment is one of TCP without options or data, in a frame.
func segment(from, to []byte, src, dst netip.AddrPort, seq, ack uint32, flags byte) []byte {
	s := header.Segment{Src: src.Port(), Dst: dst.Port(), Seq: seq, Ack: ack, Flags: flags, Window: 1 << 15}
	b := header.AppendIPv6(header.AppendEthernet(nil, to, from), src.Addr(), dst.Addr(), header.TCP, 64, s.Len())
	b = s.Append(b)
	header.Seal(b[header.EthernetLen:])
	return b
}

// TestAHostThatLeavesAVRFLeavesNothingInIt: its daemon was killed, and the next one has another uplink.
func TestAHostThatLeavesAVRFLeavesNothingInIt(t *testing.T) {
	safety.Test(t, safety.Trace)
	l := newLink(t)
	l.second(t)
	l.enslave(t, "red", "up0")
	inVRF := func() string {
		return l.host.Run(t, "ip", "-6", "route", "show", "table", "100", "proto", "92") + l.host.Run(t, "ip", "-o", "-6", "addr", "show", "dev", "red", "scope", "global")
	}
	before := inVRF()
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, "dev up0 table 100 proto 92 src fd5e::")
	d.Signal(syscall.SIGKILL)
	d.Wait() //nolint:errcheck // it was killed
	if there := inVRF(); there == before {
		t.Fatalf("nothing of the killed daemon is in the VRF:\n%s", there)
	}
	d = l.start(t, func(cfg *Config) { cfg.Uplinks = []string{"up1"} })
	l.controller.until(t, d, "join", joins)
	l.has(t, d, serviceBy("up1"))
	if after := inVRF(); after != before {
		t.Errorf("left in the VRF:\n%s\nbefore:\n%s", after, before)
	}
}

// TestAServerInAVRFServes: the uplink is in a VRF, and so are the programs: their sockets are bound to its device.
func TestAServerInAVRFServes(t *testing.T) {
	l := newLink(t)
	l.enslave(t, "red", "up0")
	l.controller.mu.Lock()
	l.controller.ready = "tcp"
	l.controller.mu.Unlock()
	before := l.kernelState(t)
	d := l.start(t, nil)
	l.controller.until(t, d, "join", joins)
	l.has(t, d, "dev up0 table 100 proto 92 src fd5e::")

	lc := net.ListenConfig{Control: onDevice("red")}
	at := netip.AddrPortFrom(webAddr, 80)
	var tcp net.Listener
	var udp net.PacketConn
	var err, err2 error
	l.host.Do(func() {
		tcp, err = lc.Listen(t.Context(), "tcp6", at.String())
		udp, err2 = lc.ListenPacket(t.Context(), "udp6", at.String())
	})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	defer udp.Close()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("hello"))
			c.Close()
		}
	}()
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			udp.WriteTo(buf[:n], from)
		}
	}()
	serving := map[uint32]bool{}
	l.controller.until(t, d, "port 80 ready, of both protocols", func(r *apiv1.HostReport) bool {
		for _, proto := range []uint32{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			serving[proto] = serving[proto] || told(r, 80, func(g *apiv1.Registration) bool { return g.Proto == proto && g.Ready })
		}
		return serving[unix.IPPROTO_TCP] && serving[unix.IPPROTO_UDP]
	})
	l.program(t, 81)
	l.controller.until(t, d, "port 81 is no instance", func(r *apiv1.HostReport) bool {
		return told(r, 81, func(g *apiv1.Registration) bool {
			return !g.Ready && strings.Contains(g.Reason, "ip vrf exec red")
		})
	})
	client := netip.MustParseAddr("fd5d:0:1:102:8000::1")
	instance := locator1.Addr(uint64(webID.Suffix))
	l.router.Run(t, "ip", "-6", "addr", "add", client.String()+"/128", "dev", "down0", "nodad")
	l.router.Run(t, "ip", "-6", "route", "add", at1, "via", l.host.LinkLocal(t, "up0").String(), "dev", "down0")

	if raw := l.host.Run(t, "ss", "-wan6"); !strings.Contains(raw, "%red") { // nothing was refused yet: it is the only one
		t.Errorf("the socket that kicks connections is not bound to the VRF:\n%s", raw)
	}

	t.Log("a datagram, and its answer")
	u := l.router.ListenPacket(t, "udp6", netip.AddrPortFrom(client, 4000).String())
	buf := make([]byte, 100)
	nstest.Wait(t, "ip -6 rule and ip -6 route show table all in the host; what the daemon printed", func() error {
		if _, err := u.WriteTo([]byte("question"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(instance, 80))); err != nil {
			return err
		}
		u.SetReadDeadline(time.Now().Add(time.Second))
		n, from, err := u.ReadFrom(buf)
		if err == nil && (string(buf[:n]) != "question" || from.(*net.UDPAddr).IP[8]&0x80 == 0) {
			t.Fatalf("%q from %v, want the question, from a socketID", buf[:n], from)
		}
		return err
	})

	t.Log("a connection, and what its server says first")
	host, router := l.host.Dev(t, "up0").Attrs().HardwareAddr, l.router.Dev(t, "down0").Attrs().HardwareAddr
	wire := l.router.Frames(t, "down0")
	from := netip.AddrPortFrom(client, 4001)
	l.router.Run(t, "ip", "-6", "addr", "del", client.String()+"/128", "dev", "down0") // its kernel would reset it
	wire.Send(t, segment(router, host, from, netip.AddrPortFrom(instance, 80), 100, 0, 0x02))
	answer := func(flags byte) func([]byte) bool {
		return func(b []byte) bool {
			return len(b) >= 74 && b[20] == unix.IPPROTO_TCP && binary.BigEndian.Uint16(b[56:]) == 4001 && b[67]&0x13 == flags
		}
	}
	first := wire.Next(t, "SYN-ACK", answer(0x12))
	peer, _ := netip.AddrFromSlice(first[22:38])
	seq := binary.BigEndian.Uint32(first[58:])
	wire.Send(t, segment(router, host, from, netip.AddrPortFrom(peer, 80), 101, seq+1, 0x10))
	wire.Next(t, "data", func(b []byte) bool { return answer(0x10)(b) && bytes.Contains(b, []byte("hello")) })

	t.Log("a client in the VRF hears that it is refused")
	l.router.Sysctl(t, "net/ipv6/conf/all/forwarding", "1")
	l.router.Run(t, "ip", "-6", "route", "add", "prohibit", "fd5c::/32")
	ctx, stop := context.WithTimeout(t.Context(), nstest.Deadline)
	defer stop()
	dialer := net.Dialer{Control: onDevice("red")}
	var c net.Conn
	l.host.Do(func() { c, err = dialer.DialContext(ctx, "tcp6", "[fd5c::1:1:2:3]:80") })
	if !errors.Is(err, syscall.EACCES) {
		t.Errorf("connect() in the VRF: %v, %v; want EACCES", c, err)
	}

	tcp.Close()
	l.controller.until(t, d, "port 80 gone", gone(80))
	d.Signal(syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
	if after := l.kernelState(t); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
}
