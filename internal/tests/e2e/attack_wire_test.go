package e2e

import (
	"encoding/binary"
	"net/netip"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// A liar sends packets with whatever source it likes from a node's namespace: a router's, for what comes in at a host's port
// from another locator its router drops (routerd's TestAMachineSendsInNobodysNameButItsOwn).
type liar struct {
	t  testing.TB
	fd int
}

func (n *network) liar(node string) *liar {
	n.t.Helper()
	l := &liar{t: n.t}
	n.at(node).Do(func() {
		var err error
		if l.fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err != nil {
			n.t.Fatalf("%s: raw socket: %v", node, err)
		}
	})
	n.t.Cleanup(func() { unix.Close(l.fd) })
	return l
}

// send sends a whole IPv6 packet.
func (l *liar) send(packet []byte) {
	l.t.Helper()
	to := unix.SockaddrInet6{Addr: [16]byte(packet[24:40])}
	if err := unix.Sendto(l.fd, packet, 0, &to); err != nil && err != unix.EHOSTUNREACH { // a router knows where nobody is
		l.t.Fatalf("send to %v: %v", netip.AddrFrom16(to.Addr), err)
	}
}

// say sends a message.
func (l *liar) say(from, to netip.Addr, message []byte) {
	l.t.Helper()
	l.send(udp(from, to, sid.Port, sid.Port, message))
}

const (
	ip6Len = header.IPv6Len
	udpLen = header.UDPLen
)

func udp(from, to netip.Addr, sport, dport uint16, payload []byte) []byte {
	return header.AppendDatagram(nil, netip.AddrPortFrom(from, sport), netip.AddrPortFrom(to, dport), 64, payload)
}

// segment is a TCP segment without options.
func segment(from, to netip.AddrPort, seq uint32, flags byte, payload []byte) []byte {
	head := header.Segment{Src: from.Port(), Dst: to.Port(), Seq: seq, Ack: seq, Flags: flags, Window: 65535}
	b := header.AppendIPv6(nil, from.Addr(), to.Addr(), header.TCP, 64, head.Len()+len(payload))
	b = append(head.Append(b), payload...)
	header.Seal(b)
	return b
}

// A heard message is one between hosts, as who stands on the path has it.
type heard struct {
	from, to netip.Addr
	bytes    []byte
}

// An ear takes down all messages between hosts that a router forwards.
type ear struct {
	mu  sync.Mutex
	all []heard
}

func (n *network) listen(router string) *ear {
	n.t.Helper()
	s := &ear{}
	var file *os.File
	n.at(router).Do(func() {
		ipv6 := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, header.EtherIPv6))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(ipv6))
		if err != nil {
			n.t.Fatalf("%s: packet socket: %v", router, err)
		}
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
		file = os.NewFile(uintptr(fd), "ear")
	})
	n.t.Cleanup(func() { file.Close() })
	go func() {
		for buf := make([]byte, 1<<16); ; {
			size, err := file.Read(buf)
			if err != nil {
				return
			}
			s.take(buf[:size])
		}
	}()
	return s
}

// take keeps messages to socketIDs: what routers and hosts say to each other is not of a flow.
func (s *ear) take(b []byte) {
	if len(b) < ip6Len+udpLen || b[6] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(b[ip6Len+2:]) != sid.Port || b[32]&0x80 == 0 {
		return
	}
	h := heard{header.IPv6(b).Src(), header.IPv6(b).Dst(), append([]byte(nil), b[ip6Len+udpLen:]...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, h)
}

// messages are those that were heard so far.
func (s *ear) messages() []heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]heard(nil), s.all...)
}

// last is the latest message of a type to an address.
func (s *ear) last(want msg.Type, to netip.Addr) (m msg.Message) {
	for _, h := range s.messages() {
		if x, err := msg.Parse(h.bytes); err == nil && x.Type() == want && sid.LocatorOf(h.to) == sid.LocatorOf(to) {
			m = x
		}
	}
	return m
}
