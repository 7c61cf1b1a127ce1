package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// What an edge keeps from a host's programs it keeps from those of a host that is a router as well, whose ports have no
// edge: an attacker on such a port reaches no socket by the addresses that only the edge gives, and a local user sends
// into the network in nobody else's name, by whichever interface.
func TestARoutersHostIsBehindItsEdge(t *testing.T) {
	s := newSmall(t)
	far := port(s.service("far"), 53)
	server := s.a.ListenPacket(t, "udp6", far)
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			server.WriteTo(buf[:n], from) // the client waits for it
		}
	}()
	client, err := s.machine.Dial("udp6", far)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nstest.Wait(t, s.said(), func() error { // what comes before the server is registered is refused, or lost
		client.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := asks(client, "one")
		return err
	})
	client.SetReadDeadline(time.Now().Add(nstest.Deadline))

	local := client.LocalAddr().(*net.UDPAddr).AddrPort()
	forged := datagram(netip.MustParseAddrPort(far), local, "forged")
	s.attacker.Frames(t, "up0").Send(t, slices.Concat(s.machine.MAC(t, "pc"), s.attacker.MAC(t, "up0"), []byte{0x86, 0xdd}, forged))
	if got, err := asks(client, "two"); err != nil || got != "two" {
		t.Errorf("a socket of the host read %q, %v: an attacker on a port of its router said so", got, err)
	}

	at, victim := s.locator("a"), s.locator("b").Addr(1<<63|7)
	ear := s.a.Frames(t, "up0")
	for _, dev := range []string{"", "pa", underlay.OwnUplink, underlay.OwnPort} {
		s.machine.Nobody(t, func() { spoof(t, dev, victim, at.Addr(1<<63|9)) })
	}
	if _, err := asks(client, "three"); err != nil {
		t.Fatal(err)
	}
	source := victim.As16()
	for _, frame := range ear.Drain(t) {
		if len(frame) > 38 && bytes.Equal(frame[22:38], source[:]) {
			t.Errorf("a user without rights sent in the name of %v", victim)
		}
	}

	for ns, devs := range map[*nstest.NS][]string{s.machine: {"", "pa", underlay.OwnPort, underlay.OwnUplink}, s.a: {"", "up0"}} {
		for _, dev := range devs {
			for _, option := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
				ns.Nobody(t, func() {
					if err := takesPort(dev, option); !errors.Is(err, unix.EADDRINUSE) {
						t.Errorf("on %s a user without rights takes the port of Scaffold's messages at %q, by option %d: %v", ns.Name, dev, option, err)
					}
				})
			}
		}
	}
}

// locator is where a host is.
func (s *small) locator(host string) sid.Locator {
	s.t.Helper()
	for _, f := range fields(s.scaffold("host", "ls")) {
		if f[0] == host {
			return sid.LocatorOf(netip.MustParsePrefix(f[2]).Addr())
		}
	}
	s.t.Fatalf("there is no host %s", host)
	return 0
}

// datagram is a whole IPv6 packet of UDP.
func datagram(from, to netip.AddrPort, text string) []byte {
	b := make([]byte, 48, 48+len(text))
	b[0], b[6], b[7] = 6<<4, unix.IPPROTO_UDP, 64
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(text)))
	src, dst := from.Addr().As16(), to.Addr().As16()
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
	binary.BigEndian.PutUint16(b[40:], from.Port())
	binary.BigEndian.PutUint16(b[42:], to.Port())
	binary.BigEndian.PutUint16(b[44:], uint16(8+len(text)))
	b = append(b, text...)
	checksum.Put6(b, 40, 46, unix.IPPROTO_UDP)
	return b
}

// spoof sends a datagram from an address that is another host's, by the interface; it may well be refused.
func spoof(t *testing.T, dev string, from, to netip.Addr) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(fd)
	if dev != "" {
		if err := unix.BindToDevice(fd, dev); err != nil {
			t.Errorf("bind to %s: %v", dev, err)
		}
	}
	if err := errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1), unix.Bind(fd, &unix.SockaddrInet6{Port: 7007, Addr: from.As16()})); err != nil && !errors.Is(err, unix.EACCES) {
		t.Errorf("bind %v: %v", from, err)
	}
	unix.Sendto(fd, []byte("in another's name"), unix.MSG_DONTWAIT, &unix.SockaddrInet6{Port: 9, Addr: to.As16()}) // it may be refused here
}

// takesPort tries to share the port of Scaffold's messages.
func takesPort(dev string, option int) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if dev != "" {
		if err := unix.BindToDevice(fd, dev); err != nil {
			return err
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrInet6{Port: sid.Port})
}
