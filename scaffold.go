package scaffold

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Host opens sockets through one host daemon. The zero Host is the one of this machine.
type Host struct {
	Daemon string // endpoint of its API, such as "unix:/run/scaffold/hostd.sock"
}

// local is the host of the package's functions.
var local = &Host{}

// Dial connects to an instance of a service; see [Host.Dial].
func Dial(network, address string) (net.Conn, error) {
	return local.Dial(context.Background(), network, address)
}

// Listen serves a service on this host; see [Host.Listen].
func Listen(network, address string) (net.Listener, error) {
	return local.Listen(context.Background(), network, address)
}

// ListenPacket serves a service's datagrams on this host; see [Host.ListenPacket].
func ListenPacket(network, address string) (net.PacketConn, error) {
	return local.ListenPacket(context.Background(), network, address)
}

// Dial connects to an instance of the service that the network chooses. The network is "tcp" or "udp".
// Errors of the connection are those of package net: EHOSTUNREACH for a service without an instance,
// ECONNREFUSED for a port that none of its instances serves.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, _, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", network, address, err)
	}
	var d net.Dialer
	return d.DialContext(ctx, network+"6", to)
}

// Listen makes this host an instance of the service: from now on flows to the port may reach it. Closing
// the listener ends that, and so does the end of the process. The network is "tcp".
func (h *Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	at, _, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
	}
	lc := net.ListenConfig{Control: freebind}
	lc.SetMultipathTCP(false) // as it is by default, no kernel goes on with another instance's connection
	return lc.Listen(ctx, network+"6", at)
}

// ListenPacket is Listen for the network "udp".
func (h *Host) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	at, _, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
	}
	lc := net.ListenConfig{Control: freebind}
	return lc.ListenPacket(ctx, network+"6", at)
}

// freebind lets a socket bind the service's address, which is on no interface.
func freebind(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1) }); e != nil {
		return e
	}
	return err
}
