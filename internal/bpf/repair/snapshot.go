// Package repair moves one established TCP connection from one host to another, socket and all, by the
// kernel's TCP_REPAIR (CAP_NET_ADMIN). The peer notices nothing: addresses, sequence numbers, options and
// queues stay.
//
// The order is the caller's: no packet of the connection reaches the old host any more; Take; close the old
// socket, silently; Restore; packets find the new host; Finish, which speaks at once. A frozen socket still
// hears: what it acknowledged after Take would be lost. Until Finish no packet may reach a host that has no
// socket for it either, as its kernel would reset the connection.
package repair

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A Connection is all of an established connection that another kernel needs to go on with it. Take fills it; who knows the
// numbers from elsewhere may do so as well, for IPv4, too. Sequence
// numbers are those of RFC 9293, modulo 2^32.
type Connection struct {
	Local, Peer netip.AddrPort

	SndUna   uint32 // of the first byte of Sent
	Sent     []byte // sent, not acknowledged
	Unsent   []byte // written, never sent
	RcvFirst uint32 // of the first byte of Received
	Received []byte // arrived in order, not read

	MSS                uint32 // clamp from the peer's option
	SndShift, RcvShift uint8  // window scales, RFC 7323 §2: the peer's, ours
	WindowScale        bool
	SACK               bool
	Timestamps         bool
	Timestamp          uint32 // ours at the moment, in the kernel's form: its lowest bit tells the unit
	Window             Window

	// Prepare is called with a socket that is to be restored, before anything else; nil: as the kernel makes it.
	Prepare func(fd int) error
}

// Window is struct tcp_repair_window of linux/tcp.h, in bytes.
type Window struct {
	SndWl1, SndWnd, MaxWnd uint32 // as the peer told it
	RcvWnd, RcvWup         uint32 // as we told it
}

// ErrState is in the error of Take for a connection that is not established: closing ones end where they are.
var ErrState = errors.New("not an established connection")

// Take freezes the socket and copies its connection. A frozen socket sends nothing, not even when it is
// closed; Thaw undoes it.
func Take(fd int) (c *Connection, err error) {
	info, err := infoOf(fd)
	if err != nil {
		return nil, failed("ask for its state", err)
	}
	if info.state != established {
		return nil, fmt.Errorf("repair: take: %w", ErrState)
	}
	if err := set(fd, unix.TCP_REPAIR, 1); err != nil {
		return nil, failed("freeze", err)
	}
	c = &Connection{
		SndShift: info.sndShift, RcvShift: info.rcvShift,
		WindowScale: info.options&optWindowScale != 0, SACK: info.options&optSACK != 0, Timestamps: info.options&optTimestamps != 0,
	}
	if err := c.take(fd); err != nil {
		return nil, errors.Join(err, Thaw(fd))
	}
	return c, nil
}

// Thaw lets a socket that was taken go on where it is.
func Thaw(fd int) error { return failed("thaw", set(fd, unix.TCP_REPAIR, repairOffSilent)) }

func (c *Connection) take(fd int) error {
	for _, step := range []struct {
		what string
		do   func(int) error
	}{{"names", c.takeNames}, {"receive queue", c.takeReceived}, {"send queue", c.takeSent}, {"options", c.takeOptions}} {
		if err := step.do(fd); err != nil {
			return failed("read its "+step.what, err)
		}
	}
	return nil
}

func (c *Connection) takeNames(fd int) error {
	local, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	peer, err := unix.Getpeername(fd)
	if err != nil {
		return err
	}
	var okLocal, okPeer bool
	c.Local, okLocal = addrPort(local)
	c.Peer, okPeer = addrPort(peer)
	if !okLocal || !okPeer {
		return errors.New("not an IPv6 socket")
	}
	return nil
}

func (c *Connection) takeReceived(fd int) error {
	b, end, err := takeQueue(fd, recvQueue, unix.SIOCINQ)
	c.Received, c.RcvFirst = b, end-uint32(len(b))
	return err
}

func (c *Connection) takeSent(fd int) error {
	b, end, err := takeQueue(fd, sendQueue, unix.SIOCOUTQ)
	if err != nil {
		return err
	}
	unsent, err := unix.IoctlGetInt(fd, unix.SIOCOUTQNSD)
	if err != nil {
		return err
	}
	if unsent > len(b) {
		return fmt.Errorf("%d bytes not sent of %d", unsent, len(b))
	}
	c.SndUna = end - uint32(len(b))
	c.Sent, c.Unsent = b[:len(b)-unsent], b[len(b)-unsent:]
	return nil
}

func (c *Connection) takeOptions(fd int) error {
	mss, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if err != nil {
		return err
	}
	ts, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_TIMESTAMP)
	if err != nil {
		return err
	}
	c.MSS, c.Timestamp = uint32(mss), uint32(ts)
	return getWindow(fd, &c.Window)
}

// takeQueue copies a queue and returns the sequence number after its last byte.
func takeQueue(fd, queue int, size uint) (b []byte, end uint32, err error) {
	if err := set(fd, unix.TCP_REPAIR_QUEUE, queue); err != nil {
		return nil, 0, err
	}
	seq, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ)
	if err != nil {
		return nil, 0, err
	}
	n, err := unix.IoctlGetInt(fd, size)
	if err != nil || n == 0 {
		return nil, uint32(seq), err
	}
	b = make([]byte, n)
	got, _, err := unix.Recvfrom(fd, b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err == nil && got != n {
		err = fmt.Errorf("%d bytes of %d", got, n)
	}
	return b, uint32(seq), err
}
