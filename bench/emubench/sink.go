package emubench

import (
	"context"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sinkRoom is what may wait for a sink of datagrams, in bytes.
const sinkRoom = 16 << 20

// sinkPatience is how long a sink waits for datagrams before it looks whether it is to end.
var sinkPatience = unix.NsecToTimeval(int64(100 * time.Millisecond))

// openSink is a socket that receives datagrams at the chain's target.
func (c *Chain) openSink() (fd int, err error) {
	err = c.to.In(func() error {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("open a socket: %w", err)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, sinkRoom)
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &sinkPatience)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet6{Port: loadPort, Addr: c.target().Addr().As16()})
	}
	if err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("receive at %v: %w", c.target(), err)
	}
	return fd, nil
}

// drain receives datagrams until the window ends.
func drain(ctx context.Context, fd int, w *window) error {
	const largest = 2048
	all := messages(largest)
	for ctx.Err() == nil {
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(all)), atOnce, unix.MSG_WAITFORONE, 0, 0)
		switch {
		case e == unix.EINTR || e == unix.EAGAIN:
		case e != 0:
			return fmt.Errorf("receive datagrams: %w", e)
		case w.add(time.Now(), int64(n), int64(n)*int64(all[0].n)):
			return nil
		}
	}
	return context.Cause(ctx)
}

// read receives one stream until the window ends.
func read(ctx context.Context, l net.Listener, w *window) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	conn, err := l.Accept()
	if err != nil {
		return or(context.Cause(ctx), err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for buf := make([]byte, streamBuffer); ; {
		n, err := conn.Read(buf)
		if err != nil {
			return or(context.Cause(ctx), fmt.Errorf("the stream ended early: %w", err))
		}
		if w.add(time.Now(), 1, int64(n)) {
			return nil
		}
	}
}

// or is why something ended: the first cause that is known.
func or(cause, err error) error {
	if cause != nil {
		return cause
	}
	return err
}

// A window counts what comes between two times after the first arrival.
type window struct {
	skip, count time.Duration
	first, from time.Time
	sum         Flow
}

// A Flow is what came of a load.
type Flow struct {
	Packets int64 // of a stream: reads
	Bytes   int64 // payload
	Took    time.Duration
}

// PerSecond is the rate of packets.
func (f Flow) PerSecond() float64 { return float64(f.Packets) / f.Took.Seconds() }

// Gbit is the rate of payload in Gbit/s.
func (f Flow) Gbit() float64 { return float64(f.Bytes) * 8 / float64(f.Took) }

// add takes what came now, and says whether the window has ended.
func (w *window) add(now time.Time, packets, bytes int64) bool {
	if w.first.IsZero() {
		w.first = now
	}
	if now.Sub(w.first) < w.skip || w.from.IsZero() {
		w.from = now
		return false
	}
	w.sum.Packets += packets
	w.sum.Bytes += bytes
	w.sum.Took = now.Sub(w.from)
	return w.sum.Took >= w.count
}
