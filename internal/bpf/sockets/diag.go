package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// Socket states, as bits of a Diag query. A datagram socket that is not connected is in StateClose.
const (
	StateEstablished = 1 << 1
	StateCloseWait   = 1 << 8
	StateClose       = 1 << 7
	StateListen      = 1 << 10
	StateAny         = 0xfff
)

// A Diag asks the kernel for the sockets of the network namespace that it was opened in. It is not for
// concurrent use.
type Diag struct {
	fd  int
	seq uint32
	buf []byte
}

// A DiagSocket is what the kernel tells of one socket.
type DiagSocket struct {
	Cookie      uint64
	Inode       uint32 // 0 while a connection waits to be accepted
	Local, Peer netip.AddrPort
	Queue       uint32 // of a listener: connections that wait to be accepted; else bytes to be read
	Backlog     uint32 // of a listener: the most that may wait; else bytes to be sent
}

// OpenDiag opens the calling thread's network namespace for queries.
func OpenDiag() (*Diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open sock_diag: %w", err)
	}
	return &Diag{fd: fd, buf: make([]byte, 1<<16)}, nil
}

// Close ends the queries.
func (d *Diag) Close() error { return unix.Close(d.fd) }

// The layout of linux/inet_diag.h; ports and addresses are in network order.
type diagID struct {
	SrcPort, DstPort [2]byte
	Src, Dst         [16]byte
	If               uint32
	Cookie           [2]uint32
}

type diagRequest struct {
	Family, Protocol, Ext, Pad uint8
	States                     uint32
	ID                         diagID
}

type diagReply struct {
	Family, State, Timer, Retrans uint8
	ID                            diagID
	Expires, RQueue, WQueue       uint32
	UID, Inode                    uint32
}

// Each calls f with the IPv6 sockets in the given states; port 0 means any local port.
func (d *Diag) Each(proto sid.Proto, states uint32, port uint16, f func(DiagSocket)) error {
	return d.each(unix.AF_INET6, proto, states, port, f)
}

// EachIPv4 is Each of IPv4 sockets.
func (d *Diag) EachIPv4(proto sid.Proto, states uint32, port uint16, f func(DiagSocket)) error {
	return d.each(unix.AF_INET, proto, states, port, f)
}

func (d *Diag) each(family uint8, proto sid.Proto, states uint32, port uint16, f func(DiagSocket)) error {
	d.seq++
	if err := d.ask(family, proto, states, port); err != nil {
		return fmt.Errorf("ask sock_diag for %v sockets: %w", proto, err)
	}
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read sock_diag: %w", err)
		}
		done, err := d.parse(d.buf[:n], f)
		if done || err != nil {
			return err
		}
	}
}

func (d *Diag) ask(family uint8, proto sid.Proto, states uint32, port uint16) error {
	req := diagRequest{Family: family, Protocol: uint8(proto), States: states}
	binary.BigEndian.PutUint16(req.ID.SrcPort[:], port)
	size := unix.SizeofNlMsghdr + int(unsafe.Sizeof(req))
	h := unix.NlMsghdr{Len: uint32(size), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: d.seq}
	msg, err := binary.Append(make([]byte, 0, size), binary.NativeEndian, &h)
	if err != nil {
		return err
	}
	if msg, err = binary.Append(msg, binary.NativeEndian, &req); err != nil {
		return err
	}
	return unix.Sendto(d.fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// parse reads one datagram of the answer and tells whether it was the last.
func (d *Diag) parse(b []byte, f func(DiagSocket)) (done bool, err error) {
	msgs, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return false, fmt.Errorf("parse sock_diag's answer: %w", err)
	}
	for _, m := range msgs {
		switch {
		case m.Header.Seq != d.seq: // left from a query that failed
		case m.Header.Type == unix.NLMSG_DONE:
			return true, nil
		case m.Header.Type == unix.NLMSG_ERROR:
			return true, diagError(m.Data)
		case m.Header.Type == unix.SOCK_DIAG_BY_FAMILY:
			if s, ok := parseDiag(m.Data); ok {
				f(s)
			}
		}
	}
	return false, nil
}

func diagError(data []byte) error {
	if len(data) < 4 {
		return errors.New("sock_diag: short error message")
	}
	return os.NewSyscallError("sock_diag", syscall.Errno(-int32(binary.NativeEndian.Uint32(data))))
}

func parseDiag(data []byte) (DiagSocket, bool) {
	var r diagReply
	if n, err := binary.Decode(data, binary.NativeEndian, &r); err != nil || n == 0 {
		return DiagSocket{}, false
	}
	return DiagSocket{
		Cookie: uint64(r.ID.Cookie[0]) | uint64(r.ID.Cookie[1])<<32,
		Inode:  r.Inode,
		Local:  netip.AddrPortFrom(r.address(r.ID.Src), binary.BigEndian.Uint16(r.ID.SrcPort[:])),
		Peer:   netip.AddrPortFrom(r.address(r.ID.Dst), binary.BigEndian.Uint16(r.ID.DstPort[:])),
		Queue:  r.RQueue, Backlog: r.WQueue,
	}, true
}

func (r *diagReply) address(a [16]byte) netip.Addr {
	if r.Family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrFrom16(a)
}
