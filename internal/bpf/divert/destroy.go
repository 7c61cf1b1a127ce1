package divert

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A question is struct inet_diag_req_v2 of linux/inet_diag.h, about one socket.
type question struct {
	family, protocol uint8
	states           uint32
	local, remote    netip.AddrPort
}

const (
	questionLen = 56
	noCookie    = 0xffffffff // INET_DIAG_NOCOOKIE
)

// Len is for package nl.
func (q *question) Len() int { return questionLen }

// Serialize is for package nl.
func (q *question) Serialize() []byte {
	b := make([]byte, questionLen)
	b[0], b[1] = q.family, q.protocol
	binary.NativeEndian.PutUint32(b[4:], q.states)
	binary.BigEndian.PutUint16(b[8:], q.local.Port())
	binary.BigEndian.PutUint16(b[10:], q.remote.Port())
	copy(b[12:28], q.local.Addr().AsSlice())
	copy(b[28:44], q.remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(b[48:], noCookie)
	binary.NativeEndian.PutUint32(b[52:], noCookie)
	return b
}

// destroy ends a socket, if there is one, and if the kernel can.
func destroy(local, remote netip.AddrPort) error {
	q := &question{family: unix.AF_INET6, protocol: unix.IPPROTO_TCP, states: ^uint32(0), local: local, remote: remote}
	if local.Addr().Is4() {
		q.family = unix.AF_INET
	}
	req := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	req.AddData(q)
	_, err := req.Execute(unix.NETLINK_INET_DIAG, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}
