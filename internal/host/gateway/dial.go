package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How often a connection is tried again when an instance refuses it or does not answer, and how long one
// try may take: the network takes a silent host out of service in a fifth of a second.
const (
	tries    = 5
	tryLimit = 2 * time.Second
	tryPause = 20 * time.Millisecond
)

// A dialer opens connections to services. Each try is a socket of its own, which the network resolves anew.
type dialer struct {
	d       net.Dialer
	limit   time.Duration // all tries together
	retried func()
}

func newDialer(limit, keepAlive time.Duration, retried func()) *dialer {
	d := &dialer{limit: limit, retried: retried}
	d.d.KeepAlive = -1 // set below, at once
	d.d.Control = func(_, _ string, c syscall.RawConn) error { return keepAlives(c, keepAlive) }
	return d
}

// dial connects to an instance that takes the connection. left is how many tries the flow has left.
func (d *dialer) dial(ctx context.Context, to netip.AddrPort, left *int) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	for err := errTried; ; {
		if *left <= 0 {
			return nil, err
		}
		*left--
		var c *net.TCPConn
		if c, err = d.once(ctx, to); err == nil {
			return c, nil
		}
		if ctx.Err() != nil || !again(err) {
			return nil, err
		}
		d.retried()
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(tryPause * time.Duration(tries-*left)):
		}
	}
}

// errTried is of a flow whose servers all failed before a byte.
var errTried = errors.New("every server failed")

func (d *dialer) once(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	c, err := d.d.DialContext(ctx, "tcp6", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// again says of which errors another instance, or the same a moment later, may know nothing: not of a
// service that does not exist or may not be used.
func again(err error) bool {
	for _, e := range []error{unix.ECONNREFUSED, unix.ECONNRESET, unix.EHOSTUNREACH, unix.ETIMEDOUT, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// keepAlives asks a silent peer after idle, four times within as long again. Connections that a listener
// accepts have it from the listening socket.
func keepAlives(c syscall.RawConn, idle time.Duration) error {
	const asks = 4
	seconds := max(1, int(idle/time.Second))
	options := [][3]int{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(1, seconds/asks)},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, asks},
	}
	var err error
	fail := c.Control(func(fd uintptr) {
		for _, o := range options {
			if e := unix.SetsockoptInt(int(fd), o[0], o[1], o[2]); e != nil {
				err = e
			}
		}
	})
	return errors.Join(fail, err)
}
