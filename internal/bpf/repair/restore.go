package repair

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Restore makes a socket for the connection in the calling thread's network namespace, frozen: it neither
// hears nor speaks until Finish. The local address need not be one of the host's. The socket blocks.
func (c *Connection) Restore() (fd int, err error) {
	fd, err = unix.Socket(family(c.Local), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, failed("make a socket", err)
	}
	for _, step := range []struct {
		what string
		do   func(int) error
	}{{"make it as it is to be", c.prepare}, {"make room", c.room}, {"number its bytes", c.number}, {"connect", c.connect}, {"set its options", c.options},
		{"fill its queues", c.fill}, {"set its windows", func(fd int) error { return setWindow(fd, &c.Window) }}} {
		if err := step.do(fd); err != nil {
			unix.Close(fd) // says nothing to the peer: it is frozen, or not connected
			return -1, failed(step.what, err)
		}
	}
	return fd, nil
}

// Finish lets a restored socket speak, and writes what the old one had not sent yet.
func (c *Connection) Finish(fd int) error {
	if err := set(fd, unix.TCP_REPAIR, 0); err != nil { // sends a window probe: the peer hears that we are here
		return failed("unfreeze", err)
	}
	return failed("write what was not sent", writeAll(fd, c.Unsent))
}

func (c *Connection) prepare(fd int) error {
	if c.Prepare == nil {
		return nil
	}
	return c.Prepare(fd)
}

// room lets the queues hold what they held; the kernel's own limits are for programs.
func (c *Connection) room(fd int) error {
	const spare = 4 // what the kernel counts for a byte, at worst, beside the byte
	send, recv := spare*(len(c.Sent)+len(c.Unsent)), spare*len(c.Received)
	var err error
	if send > 1<<16 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, send)
	}
	if recv > 1<<16 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, recv))
	}
	return err
}

func (c *Connection) number(fd int) error {
	if err := set(fd, unix.TCP_REPAIR, 1); err != nil {
		return err
	}
	for _, q := range []struct {
		queue int
		seq   uint32
	}{{sendQueue, c.SndUna}, {recvQueue, c.RcvFirst}} {
		if err := set(fd, unix.TCP_REPAIR_QUEUE, q.queue); err != nil {
			return err
		}
		if err := set(fd, unix.TCP_QUEUE_SEQ, int(int32(q.seq))); err != nil {
			return err
		}
	}
	return nil
}

func (c *Connection) connect(fd int) error {
	level, option := unix.IPPROTO_IPV6, unix.IPV6_FREEBIND
	if c.Local.Addr().Is4() {
		level, option = unix.IPPROTO_IP, unix.IP_FREEBIND
	}
	if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, sockaddr(c.Local)); err != nil {
		return fmt.Errorf("bind to %v: %w", c.Local, err)
	}
	return unix.Connect(fd, sockaddr(c.Peer)) // no packet: the socket is frozen
}

func (c *Connection) options(fd int) error {
	list := []unix.TCPRepairOpt{{Code: codeMSS, Val: c.MSS}}
	if c.WindowScale {
		list = append(list, unix.TCPRepairOpt{Code: codeWindowScale, Val: uint32(c.SndShift) | uint32(c.RcvShift)<<16})
	}
	if c.SACK {
		list = append(list, unix.TCPRepairOpt{Code: codeSACK})
	}
	if c.Timestamps {
		list = append(list, unix.TCPRepairOpt{Code: codeTimestamps})
	}
	if err := setOptions(fd, list); err != nil || !c.Timestamps {
		return err
	}
	return set(fd, unix.TCP_TIMESTAMP, int(int32(c.Timestamp)))
}

// fill fills the receive queue and what was sent; what was not would be refused before Finish.
func (c *Connection) fill(fd int) error {
	if err := set(fd, unix.TCP_REPAIR_QUEUE, recvQueue); err != nil {
		return err
	}
	if err := writeAll(fd, c.Received); err != nil {
		return err
	}
	if err := set(fd, unix.TCP_REPAIR_QUEUE, sendQueue); err != nil {
		return err
	}
	return writeAll(fd, c.Sent)
}
