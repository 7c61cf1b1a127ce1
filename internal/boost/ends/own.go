package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// Connections that switches rewrite have an address of this machine at our end, and a port of their own. Their FIN is an RST until
// Finished, as of all.

// An Awaited is a port where one client is waited for.
type Awaited struct {
	At     netip.AddrPort
	ends   *Ends
	client netip.AddrPort
	l      *net.TCPListener
}

// Await takes a port of one of this machine's addresses for a client, and no one else.
func (e *Ends) Await(own netip.Addr, client netip.AddrPort) (*Awaited, error) {
	l, err := listenAt(familyOf(own), netip.AddrPortFrom(own, 0).String())
	if err != nil {
		return nil, err
	}
	w := &Awaited{At: endOf(l.Addr()), ends: e, client: client, l: l}
	if err := e.kernel.Begin(w.At, client); err != nil { // before the client is there: a process that dies in between ends it by RST
		return nil, errors.Join(err, l.Close())
	}
	return w, nil
}

// Accept waits for the client, resets whoever else comes, and gives the port up: what there is of it then is the connection.
func (w *Awaited) Accept(ctx context.Context) (*net.TCPConn, error) {
	defer w.l.Close()
	defer context.AfterFunc(ctx, func() { w.l.Close() })()
	for {
		c, err := w.l.AcceptTCP()
		switch {
		case err != nil:
			return nil, errors.Join(w.ends.kernel.End(w.At, w.client), fmt.Errorf("handshake of %v with %v: %w", w.client, w.At, errors.Join(ctx.Err(), err)))
		case endOf(c.RemoteAddr()) != w.client:
			reset(c)
			continue
		}
		if err := w.ends.kernel.Keep(w.At, w.client); err != nil {
			reset(c)
			return nil, err
		}
		return c, nil
	}
}

// Close gives the port up for who does not Accept.
func (w *Awaited) Close() error { return errors.Join(w.l.Close(), w.ends.kernel.End(w.At, w.client)) }

// A Port is one of this machine's, which nobody else gets until Close.
type Port struct {
	At netip.AddrPort
	fd int
}

// Take takes a free port of one of this machine's addresses, from which DialFrom connects.
func Take(own netip.Addr) (*Port, error) {
	family, sa := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: own.As16()})
	if own.Is4() {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Addr: own.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a port of %v: %w", own, err)
	}
	p := &Port{fd: fd}
	// SO_REUSEPORT comes behind the bind: before, the kernel would take a port for free that others with it have, too; after, the
	// socket that connects can share this one's, and so could another program of this user's alone, unlike with SO_REUSEADDR.
	err = errors.Join(unix.Bind(fd, sa), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	if err == nil {
		sa, err = unix.Getsockname(fd)
	}
	switch at := sa.(type) {
	case *unix.SockaddrInet4:
		p.At = netip.AddrPortFrom(own, uint16(at.Port))
	case *unix.SockaddrInet6:
		p.At = netip.AddrPortFrom(own, uint16(at.Port))
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("a port of %v: %w", own, err)
	}
	return p, nil
}

// Keep has nobody share the port any more, but for the connection that has it.
func (p *Port) Keep() error { return unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 0) }

// Close gives the port up; a connection from it has it on.
func (p *Port) Close() { unix.Close(p.fd) }

// DialFrom is Dial from a port of this machine's.
func (e *Ends) DialFrom(ctx context.Context, p *Port, server netip.AddrPort) (*net.TCPConn, frame.Options, error) {
	return e.dial(ctx, p.At, server, func(network, address string, c syscall.RawConn) (err error) {
		controlled := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(controlled, err, transparent(network, address, c))
	})
}
