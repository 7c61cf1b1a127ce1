package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// Mark is set on packets that the daemon makes for local sockets: a rule sends them to the table in which
// service addresses and the identity are local.
const Mark = 0x5caf

// Marks of packets that the daemon makes for the network: their flow label is to stay, MARK_LABELLED, and names the host
// that they are for, MARK_ASKED.
const (
	labelled = 0x5cb0
	asked    = 0x5cb1
)

// injectSockets are the raw sockets for whole IPv6 packets: one towards local sockets, one for questions to the network,
// one for those to a host that is named, and one for the daemon's own messages. Each has its mark from the start.
type injectSockets struct{ local, network, named, messages int }

// noSockets are those of the host before they are needed; a guest's are opened with it, in its namespace.
var noSockets = injectSockets{-1, -1, -1, -1}

// openSockets opens those of the calling thread's namespace.
func openSockets() (s injectSockets, err error) {
	s = noSockets
	if s.local, err = rawSocket(Mark, ""); err == nil {
		s.network, err = rawSocket(labelled, "")
	}
	if err == nil {
		s.named, err = rawSocket(asked, "")
	}
	if err != nil {
		s.close()
	}
	return s, err
}

func (s *injectSockets) close() {
	for _, fd := range []int{s.local, s.network, s.named, s.messages} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	*s = noSockets
}

// rawSocket is bound to a device where that is named.
func rawSocket(mark int, device string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return -1, fmt.Errorf("host edge: raw socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("host edge: mark raw socket: %w", err)
	}
	if device != "" {
		if err := unix.BindToDevice(fd, device); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("host edge: bind raw socket to %s: %w", device, err)
		}
	}
	return fd, nil
}

// BindTo names the device that packets for local sockets come by, and questions go by: that of the VRF that the uplinks are
// in; "" where they are in none.
func (e *Edge) BindTo(device string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.device != device {
		e.sockets.close() // they are opened when they are needed
		e.device = device
	}
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
	header.Seal(b)
	return b
}

// Retry sends the SYN or datagram that was refused again: to be resolved anew, but not to whom the label leaves out, or
// to the host at the locator. A connection that somebody has answered meanwhile is left alone.
func (e *Edge) Retry(ev Event, label sid.Label, to sid.Locator) error {
	if ev.Kind != Refused || !ev.repeatable() {
		return errors.New("host edge: retry: not a refusal of what can be sent again")
	}
	packet := quotedDatagram(ev)
	if ev.Proto != sid.UDP {
		if !e.connecting(ev) {
			return nil
		}
		packet = originalSYN(ev)
	}
	mark := labelled
	if to != 0 {
		mark, label = asked, sid.NewLabel(to, sid.MaxRetry)
	}
	binary.BigEndian.PutUint32(packet, 6<<28|uint32(label))
	return e.inject(ev.Tuple.Guest, mark, packet, ev.Peer.Addr())
}

// repeatable says whether what was refused is known well enough to be sent again.
func (ev Event) repeatable() bool { return ev.Proto != sid.UDP || quotedDatagram(ev) != nil }

// quotedDatagram is the datagram that an error quotes, nil unless it quotes all of it.
func quotedDatagram(ev Event) []byte {
	quote := ev.quoted()
	if quote == nil || quote.Next() != header.UDP || quote.Says() < ip6Len+udpLen || len(quote) < quote.Says() {
		return nil
	}
	d := append([]byte(nil), quote[:quote.Says()]...)
	seal(d, ev)
	return d
}

// seal writes a header with the addresses that the program sees, and the checksum.
func seal(packet []byte, ev Event) {
	header.AppendIPv6(packet[:0], ev.Local.Addr(), ev.Peer.Addr(), packet[6], ownHops, len(packet)-ip6Len)
	header.Seal(packet)
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
	all, device := &e.sockets, e.device
	if guest != 0 {
		g := e.guests[guest]
		if g == nil {
			return -1, fmt.Errorf("host edge: guest %d is not there", guest)
		}
		all, device = &g.sockets, ""
	}
	at := &all.network
	switch mark {
	case Mark:
		at = &all.local
	case asked:
		at = &all.named
	}
	if *at < 0 {
		*at, err = rawSocket(mark, device)
	}
	return *at, err
}

const (
	ip6Len   = header.IPv6Len
	icmp6Len = header.ICMPv6Len
	tcpLen   = header.TCPLen
	udpLen   = header.UDPLen

	ownHops = 64 // of what the daemon sends itself, for its sockets and to others of its kind
)

// originalSYN is the SYN that an error quotes, if it quotes all of it; otherwise one without options, which
// answers any kernel's own: options are in force only when both ends sent them.
func originalSYN(ev Event) []byte {
	syn := quotedSYN(ev)
	if syn == nil {
		syn = plainSYN(ev)
	}
	syn[6] = header.TCP
	seal(syn, ev)
	return syn
}

func quotedSYN(ev Event) []byte {
	quote := ev.quoted()
	if quote == nil || quote.Next() != header.TCP || len(quote) < ip6Len+tcpLen {
		return nil
	}
	head := header.Transport(quote[ip6Len:]).Head()
	if head < tcpLen || quote.Says() < ip6Len+head || len(quote) < ip6Len+head {
		return nil
	}
	return append([]byte(nil), quote[:ip6Len+head]...)
}

func plainSYN(ev Event) []byte {
	s := header.Segment{Src: ev.Local.Port(), Dst: ev.Peer.Port(), Seq: ev.ISN, Flags: header.SYN, Window: 65535}
	return s.Append(make([]byte, ip6Len, ip6Len+tcpLen))
}
