package sockets

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// Socket states, as bits of a Diag query. A datagram socket that is not connected is in StateClose.
const (
	StateEstablished = 1 << 1
	StateSYNReceived = 1 << 3
	StateCloseWait   = 1 << 8
	StateClose       = 1 << 7
	StateListen      = 1 << 10
	StateAny         = 0xfff
)

// Named is the mark of sockets at which an agent of boost serves a name for those who do: MARK_NAMED of
// internal/bpf/include/carried.h.
const Named = 0x30b1

// A Diag asks the kernel for the sockets of the network namespace that it was opened in. It is not for
// concurrent use.
type Diag struct {
	socket *nl.NetlinkSocket
	open   map[int]*nl.SocketHandle // the same as the library takes it
}

// A DiagSocket is what the kernel tells of one socket.
type DiagSocket struct {
	Cookie      uint64
	Inode       uint32 // 0 while a connection waits to be accepted
	Local, Peer netip.AddrPort
	Queue       uint32 // of a listener: connections that wait to be accepted; else bytes to be read
	Backlog     uint32 // of a listener: the most that may wait; else bytes to be sent
	UID         uint32 // of the user who made it
	Device      uint32 // that it is bound to (SO_BINDTODEVICE), 0: to none
	Mark        uint32 // of what it sends (SO_MARK); 0 where who asks has not the right to know (CAP_NET_ADMIN)
}

// OpenDiag opens the calling thread's network namespace for queries.
func OpenDiag() (*Diag, error) {
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open sock_diag: %w", err)
	}
	return &Diag{socket: s, open: map[int]*nl.SocketHandle{unix.NETLINK_SOCK_DIAG: {Socket: s}}}, nil
}

// Close ends the queries.
func (d *Diag) Close() { d.socket.Close() }

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
	return d.each(unix.AF_INET6, uint32(proto), states, port, f)
}

// EachMultipath is Each of listeners of Multipath TCP. Programs hold these; sock_diag lists the sockets of TCP below
// them under inodes and cookies of their own.
func (d *Diag) EachMultipath(port uint16, f func(DiagSocket)) error {
	return d.each(unix.AF_INET6, unix.IPPROTO_MPTCP, StateListen, port, f)
}

// EachIPv4 is Each of IPv4 sockets.
func (d *Diag) EachIPv4(proto sid.Proto, states uint32, port uint16, f func(DiagSocket)) error {
	return d.each(unix.AF_INET, uint32(proto), states, port, f)
}

// diagProtocol is INET_DIAG_REQ_PROTOCOL: a protocol that does not fit 8 bits.
const diagProtocol = 3

// each asks by messages of our own: the library's for sockets ask for all states and all ports, which on a host with
// many connections is a thousand times what we look for, and know neither Multipath TCP nor devices.
func (d *Diag) each(family uint8, proto uint32, states uint32, port uint16, f func(DiagSocket)) error {
	q := diagRequest{Family: family, Protocol: uint8(proto), States: states}
	binary.BigEndian.PutUint16(q.ID.SrcPort[:], port)
	body, err := binary.Append(nil, binary.NativeEndian, &q)
	if err != nil {
		return err
	}
	req := nl.NewNetlinkRequest(unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	req.Sockets = d.open
	req.AddRawData(body)
	if proto > 255 {
		req.AddRawData(nl.NewRtAttr(diagProtocol, nl.Uint32Attr(proto)).Serialize())
	}
	err = req.ExecuteIter(unix.NETLINK_SOCK_DIAG, unix.SOCK_DIAG_BY_FAMILY, func(msg []byte) bool {
		if s, ok := parseDiag(msg); ok {
			f(s)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("ask sock_diag for sockets of protocol %d: %w", proto, err)
	}
	return nil
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
		UID: r.UID, Device: r.ID.If, Mark: markIn(data[min(len(data), replyLen):]),
	}, true
}

// replyLen is that of a diagReply in bytes, behind which attributes are; diagMark is INET_DIAG_MARK.
const (
	replyLen = 72
	diagMark = 15
)

// markIn is the mark among a socket's attributes.
func markIn(data []byte) uint32 {
	attributes, err := nl.ParseRouteAttr(data)
	if err != nil {
		return 0
	}
	for _, a := range attributes {
		if a.Attr.Type == diagMark && len(a.Value) == 4 {
			return binary.NativeEndian.Uint32(a.Value)
		}
	}
	return 0
}

func (r *diagReply) address(a [16]byte) netip.Addr {
	if r.Family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrFrom16(a)
}
