package private

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrOtherUser says that another user is at the other end of a socket.
var ErrOtherUser = errors.New("another user is at the other end")

// Peer is nil where this process's user, or root, is at the other end: of a connection that was accepted the one who
// connected, of one that was dialled the one who listened (SO_PEERCRED, unix(7)).
func Peer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%w: %s is no Unix socket", ErrOtherUser, c.LocalAddr())
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if cred.Uid != 0 && cred.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%w: user %d", ErrOtherUser, cred.Uid)
	}
	return nil
}

// dialTime bounds a connection to a socket whose backlog somebody keeps full.
const dialTime = time.Second

// Dial connects to a Unix socket on which this user, or root, listens.
func Dial(name string) (net.Conn, error) {
	c, err := net.DialTimeout("unix", name, dialTime)
	if err != nil {
		return nil, err
	}
	if err := Peer(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Listener takes connections of this user and of root alone, and closes others.
func Listener(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || Peer(c) == nil {
			return c, err
		}
		c.Close()
	}
}
