// Package freeport gives tests addresses of loopback where nobody listens and that no other program is given meanwhile.
//
// Whoever listens on port 0, closes, and tells the port has told one that the kernel gives to the next who asks for any:
// tests that run side by side then find another test's server where nobody should answer.
package freeport

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Address is an address on the loopback of IPv4 whose TCP port is the test's until it ends.
func Address(t testing.TB) string { return of(t, netip.AddrFrom4([4]byte{127, 0, 0, 1})) }

// Address6 is Address for IPv6.
func Address6(t testing.TB) string { return of(t, netip.IPv6Loopback()) }

func of(t testing.TB, host netip.Addr) string {
	t.Helper()
	at, release, err := Reserve(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return at
}

// Reserve keeps a TCP port of the address until release is called. Connecting to it is refused until somebody listens there,
// as any listener of Go can: it sets SO_REUSEADDR.
//
// What keeps it is a socket that is bound and does not listen. Linux lets another socket bind the same port when both have
// SO_REUSEADDR and none of them listens yet; ports that it chooses by itself, for port 0 and for connect(), are never such.
func Reserve(host netip.Addr) (at string, release func(), err error) {
	family, bind := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: host.As16()})
	if host.Is4() {
		family, bind = unix.AF_INET, &unix.SockaddrInet4{Addr: host.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("no socket to keep a port of %s: %w", host, err)
	}
	err = errors.Join(
		os.NewSyscallError("setsockopt SO_REUSEADDR", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, bind)))
	name, nerr := unix.Getsockname(fd)
	if err = errors.Join(err, os.NewSyscallError("getsockname", nerr)); err != nil {
		unix.Close(fd)
		return "", nil, fmt.Errorf("no port of %s could be kept: %w", host, err)
	}
	var port int
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		port = name.Port
	case *unix.SockaddrInet6:
		port = name.Port
	}
	return netip.AddrPortFrom(host, uint16(port)).String(), func() { unix.Close(fd) }, nil
}
