package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/checksum"
	"scaffold.dev/scaffold/sid"
)

// Mark is set on packets that the daemon makes for local sockets: a rule sends them to the table in which
// service addresses and the identity are local.
const Mark = 0x5caf

// injectSockets are the raw sockets for whole IPv6 packets: one towards local sockets, one towards the network.
type injectSockets struct{ local, network int }

// noSockets are those of the host before they are needed; a guest's are opened with it, in its namespace.
var noSockets = injectSockets{-1, -1}

// openSockets opens those of the calling thread's namespace.
func openSockets() (s injectSockets, err error) {
	s = noSockets
	if s.local, err = rawSocket(Mark); err == nil {
		s.network, err = rawSocket(0)
	}
	if err != nil {
		s.close()
	}
	return s, err
}

func (s *injectSockets) close() {
	for _, fd := range []int{s.local, s.network} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	*s = noSockets
}

func rawSocket(mark int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return -1, fmt.Errorf("host edge: raw socket: %w", err)
	}
	if mark == 0 {
		return fd, nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("host edge: mark raw socket: %w", err)
	}
	return fd, nil
}

// InjectRefusal gives the refusal to the local socket that was refused. The error reaches a socket only while
// no system call holds it, so that a caller sends it again a moment later; a socket that is gone does not mind.
func (e *Edge) InjectRefusal(ev Event) error {
	if ev.Kind != Refused || len(ev.Packet) < ip6Len {
		return errors.New("host edge: inject refusal: the event holds none")
	}
	return e.inject(ev.Tuple.Guest, Mark, completed(ev.Packet), ev.Local.Addr())
}

// completed is the packet with its checksum computed. Where sender and router offload it (veth pairs do), what
// the edge copies has only half of one, and the kernel believes it only as long as it knows that.
func completed(packet []byte) []byte {
	b := append([]byte(nil), packet...)
	at := ip6Len + 2
	if b[6] == unix.IPPROTO_TCP {
		at = ip6Len + 16
	}
	if len(b) < at+2 {
		return b
	}
	checksum.Put6(b, ip6Len, at, b[6])
	return b
}

// Retry sends the SYN or datagram that was refused again, to be resolved anew.
func (e *Edge) Retry(ev Event) error {
	if ev.Kind != Refused || !ev.repeatable() {
		return errors.New("host edge: retry: not a refusal of what can be sent again")
	}
	packet := quotedDatagram(ev)
	if ev.Proto != sid.UDP {
		packet = originalSYN(ev)
	}
	return e.inject(ev.Tuple.Guest, 0, packet, ev.Peer.Addr())
}

// repeatable says whether what was refused is known well enough to be sent again.
func (ev Event) repeatable() bool { return ev.Proto != sid.UDP || quotedDatagram(ev) != nil }

// quotedDatagram is the datagram that an error quotes, nil unless it quotes all of it.
func quotedDatagram(ev Event) []byte {
	if len(ev.Packet) < 2*ip6Len+icmp6Len+udpLen || ev.Packet[6] != unix.IPPROTO_ICMPV6 {
		return nil
	}
	quote := ev.Packet[ip6Len+icmp6Len:]
	size := ip6Len + int(binary.BigEndian.Uint16(quote[4:]))
	if quote[6] != unix.IPPROTO_UDP || size < ip6Len+udpLen || len(quote) < size {
		return nil
	}
	d := append([]byte(nil), quote[:size]...)
	seal(d, ev, ip6Len+6)
	return d
}

// seal writes the addresses that the program sees and the checksum, which stands at the offset at.
func seal(packet []byte, ev Event, at int) {
	binary.BigEndian.PutUint32(packet, 6<<28)
	packet[7] = 64
	local, peer := ev.Local.Addr().As16(), ev.Peer.Addr().As16()
	copy(packet[8:], local[:])
	copy(packet[24:], peer[:])
	checksum.Put6(packet, ip6Len, at, packet[6])
}

// inject sends a whole IPv6 packet to where the routing table of the guest's namespace, or of this one, says.
func (e *Edge) inject(guest uint16, mark int, packet []byte, to netip.Addr) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	fd, err := e.injector(guest, mark)
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, packet, unix.MSG_DONTWAIT, &unix.SockaddrInet6{Addr: to.As16()}); err != nil {
		return fmt.Errorf("host edge: send %d bytes to %v: %w", len(packet), to, err)
	}
	return nil
}

// injector is the socket for packets with that mark. The caller holds e.mu.
func (e *Edge) injector(guest uint16, mark int) (fd int, err error) {
	all := &e.sockets
	if guest != 0 {
		g := e.guests[guest]
		if g == nil {
			return -1, fmt.Errorf("host edge: guest %d is not there", guest)
		}
		all = &g.sockets
	}
	at := &all.network
	if mark != 0 {
		at = &all.local
	}
	if *at < 0 {
		*at, err = rawSocket(mark)
	}
	return *at, err
}

const (
	ip6Len   = 40
	icmp6Len = 8
	tcpLen   = 20
	udpLen   = 8
)

// originalSYN is the SYN that an error quotes, if it quotes all of it; otherwise one without options, which
// answers any kernel's own: options are in force only when both ends sent them.
func originalSYN(ev Event) []byte {
	syn := quotedSYN(ev)
	if syn == nil {
		syn = plainSYN(ev)
	}
	binary.BigEndian.PutUint16(syn[4:], uint16(len(syn)-ip6Len))
	syn[6] = unix.IPPROTO_TCP
	seal(syn, ev, ip6Len+16)
	return syn
}

func quotedSYN(ev Event) []byte {
	if len(ev.Packet) < 2*ip6Len+icmp6Len+tcpLen || ev.Packet[6] != unix.IPPROTO_ICMPV6 {
		return nil
	}
	quote := ev.Packet[ip6Len+icmp6Len:]
	payload := int(binary.BigEndian.Uint16(quote[4:]))
	header := int(quote[ip6Len+12]>>4) * 4
	if quote[6] != unix.IPPROTO_TCP || header < tcpLen || payload < header || len(quote) < ip6Len+header {
		return nil
	}
	return append([]byte(nil), quote[:ip6Len+header]...)
}

func plainSYN(ev Event) []byte {
	syn := make([]byte, ip6Len+tcpLen)
	tcp := syn[ip6Len:]
	binary.BigEndian.PutUint16(tcp, ev.Local.Port())
	binary.BigEndian.PutUint16(tcp[2:], ev.Peer.Port())
	binary.BigEndian.PutUint32(tcp[4:], ev.ISN)
	tcp[12], tcp[13] = tcpLen/4<<4, 0x02
	binary.BigEndian.PutUint16(tcp[14:], 65535)
	return syn
}
