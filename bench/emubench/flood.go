package emubench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A message is what sendmmsg(2) and recvmmsg(2) take: struct mmsghdr.
type message struct {
	unix.Msghdr
	n uint32 // bytes that came
	_ uint32
}

// atOnce is how many datagrams one system call sends or receives.
const atOnce = 64

// messages are as many as go at once, all with the same bytes.
func messages(payload int) *[atOnce]message {
	v := &unix.Iovec{Base: &make([]byte, max(payload, 1))[0]}
	v.SetLen(payload)
	all := &[atOnce]message{}
	for i := range all {
		all[i].Iov = v
		all[i].SetIovlen(1)
	}
	return all
}

// openFlood is a socket that sends datagrams to the chain's target alone.
func (c *Chain) openFlood() (fd int, err error) {
	err = c.from.In(func() error {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("open a socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet6{Port: loadPort, Addr: c.target().Addr().As16()}); err != nil {
		return 0, errors.Join(fmt.Errorf("send to %v: %w", c.target(), err), unix.Close(fd))
	}
	return fd, nil
}

// flood sends datagrams as fast as it goes until ctx ends.
func flood(ctx context.Context, fd, payload int) error {
	all := messages(payload)
	for ctx.Err() == nil {
		_, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(all)), atOnce, 0, 0, 0)
		switch e {
		case 0, unix.EAGAIN, unix.EINTR, unix.ENOBUFS: // a queue is full
		default:
			return fmt.Errorf("send datagrams: %w", e)
		}
	}
	return nil
}

// congestion control of all streams: the system's own differs from machine to machine.
const congestion = "cubic"

// openStream connects to the chain's target.
func (c *Chain) openStream(ctx context.Context) (conn net.Conn, err error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		e := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
		})
		return errors.Join(e, err)
	}}
	err = c.from.In(func() error {
		conn, err = d.DialContext(ctx, "tcp6", c.target().String())
		return err
	})
	return conn, err
}

// streamBuffer is what streams are written and read by.
const streamBuffer = 256 << 10

// stream writes until the connection is closed.
func stream(conn net.Conn) {
	for buf := make([]byte, streamBuffer); ; {
		if _, err := conn.Write(buf); err != nil {
			return // the reader says why
		}
	}
}
