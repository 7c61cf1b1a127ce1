package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// alive has a dead end noticed after 25 s of silence.
var alive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// tries are for a port that is free in both families.
const tries = 16

// listen listens at 127.0.0.1 and ::1, at one port. Nobody is to connect there: the program gives it SYNs that are for
// other machines, and its sockets answer for those.
func listen() ([]*net.TCPListener, error) {
	var last error
	for range tries {
		v4, err := listenAt("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		v6, err := listenAt("tcp6", fmt.Sprintf("[::1]:%d", portOf(v4)))
		if err == nil {
			return []*net.TCPListener{v4, v6}, nil
		}
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) { // IPv6 is off
			return []*net.TCPListener{v4}, nil
		}
		v4.Close()
		last = err
	}
	return nil, last
}

func listenAt(network, address string) (*net.TCPListener, error) {
	lc := net.ListenConfig{Control: transparent, KeepAliveConfig: alive}
	lc.SetMultipathTCP(false) // its sockets cannot be given packets
	l, err := lc.Listen(context.Background(), network, address)
	if err != nil {
		return nil, fmt.Errorf("listener for connections that are accepted: %w", err)
	}
	return l.(*net.TCPListener), nil
}

// Carried is the mark of what is sent in the name of end hosts: MARK_CARRIED of internal/bpf/include/carried.h. Where the
// machine is a host of the network as well, its edge lets nothing else leave with the address of another host. No rule of
// routing looks for it.
const Carried = 0x30b0

// transparent lets a socket have another machine's address. A client may use its port again while our socket of the
// connection before still waits for late segments.
func transparent(network, _ string, c syscall.RawConn) error {
	var err error
	controlled := c.Control(func(fd uintptr) { err = asEndHost(int(fd), network == "tcp6") })
	return errors.Join(controlled, err)
}

// asEndHost is transparent for a socket of either family.
func asEndHost(fd int, v6 bool) error {
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil { // urgent bytes stay in the stream: reading would leave them out, and the kernel's counts have them
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_OOBINLINE, 1)
	}
	if err == nil { // what a listener accepts has the listener's mark
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, Carried)
	}
	switch {
	case err != nil:
		return err
	case v6:
		return unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
	}
	return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
}

func portOf(l *net.TCPListener) uint16 { return endOf(l.Addr()).Port() }

// Room says why there are no descriptors for one connection more; nil: there are. A client that has been answered in the server's name
// can be nothing but reset then, and one that has not goes on.
func (e *Ends) Room() error {
	raw, err := e.listeners[0].SyscallConn()
	if err != nil {
		return err
	}
	controlled := raw.Control(func(fd uintptr) {
		for range 2 { // the connection's, and one to ask the kernel by for sockets of the client's port (destroy)
			var free int
			if free, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err != nil {
				err = fmt.Errorf("no descriptor is left: %w", err)
				return
			}
			defer unix.Close(free)
		}
	})
	return errors.Join(controlled, err)
}

// accept gives connections to those who wait for them. Any other is reset: its client came too late, or it is a local
// program's, which found the port.
func (e *Ends) accept(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		switch {
		case err == nil:
			e.arrived(c)
		case errors.Is(err, net.ErrClosed):
			return
		default: // no descriptor is left, for instance: the connection waits in the kernel's queue, and would be offered at once
			select {
			case <-time.After(20 * time.Millisecond):
			case <-e.done:
				return
			}
		}
	}
}

func (e *Ends) arrived(c *net.TCPConn) {
	e.mu.Lock()
	p := pairOf(c)
	to := e.waiting[p]
	delete(e.waiting, p)
	e.mu.Unlock()
	if to == nil {
		reset(c)
		return
	}
	to <- c
}

func (e *Ends) expect(p pair) chan *net.TCPConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := make(chan *net.TCPConn, 1)
	e.waiting[p] = c
	return c
}

// give takes expect back; a connection that came meanwhile is nobody's.
func (e *Ends) give(p pair, c chan *net.TCPConn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting[p] == c {
		delete(e.waiting, p)
	}
	select {
	case late := <-c:
		reset(late)
	default:
	}
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// familyOf is the network of an address, as package net calls it.
func familyOf(a netip.Addr) string {
	if a.Is4() {
		return "tcp4"
	}
	return "tcp6"
}
