package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Named is the mark of sockets of names, at both ends: MARK_NAMED of internal/bpf/include/carried.h. By it the host's daemon knows
// that it is an agent that serves.
const Named = 0x30b1

// ListenName serves a service at one of its ports, as a program of this host.
func ListenName(at netip.AddrPort) (net.Listener, error) {
	lc := net.ListenConfig{Control: markNamed, KeepAliveConfig: alive}
	lc.SetMultipathTCP(false)
	return lc.Listen(context.Background(), "tcp6", at.String())
}

// DialName connects to a service, as a program of this host. The errors are those of Dial.
func DialName(ctx context.Context, at netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{Control: markNamed, KeepAliveConfig: alive}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp6", at.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reasonOf(err), err)
	}
	return c.(*net.TCPConn), nil
}

func markNamed(_, _ string, c syscall.RawConn) error {
	var err error
	controlled := c.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, Named), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1))
	})
	return errors.Join(controlled, err)
}

// IsNamed reports whether a connection is one of a name: its end is the host's to tell, and no session of the ports' programs.
func IsNamed(c *net.TCPConn) (is bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		mark, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK)
		is = err == nil && mark == Named
	})
	return err == nil && is
}
