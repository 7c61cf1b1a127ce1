package ofconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// receiveRoom is for what a switch punts while nobody reads, in bytes: some thousands of first packets of flows. Open
// vSwitch keeps a hundred messages that the connection does not take, and drops the others without a word. As it is counted
// with all that a packet takes in the kernel, a quarter of it is the window that the switch may use.
const receiveRoom = 4 << 20

// widen gives a socket its room before it is connected, or as much of it as net.core.rmem_max allows to who is not root. A
// window that stays the same while the room fills is acknowledged at once, one that shrinks late, and a sender at rest has
// ten packets before it needs to hear something.
func widen(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(number uintptr) {
		fd := int(number)
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveRoom) != nil {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveRoom) //nolint:errcheck // what there is will do
		}
		if room, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, room/4) //nolint:errcheck // Linux has had it for ever
		}
	})
}

// Dial connects to a switch that waits for controllers, at tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE,
// as Open vSwitch writes them. Secure is for ssl alone. To who comes by that way Open vSwitch sends
// nothing unasked before it has seen an ofp.SetConfig with a MissLen.
func Dial(ctx context.Context, target string, secure *tls.Config, cfg Config) (*Conn, error) {
	network, address, err := split(target, secure)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if network == "ssl" {
		nc, err = (&tls.Dialer{NetDialer: &net.Dialer{Control: widen}, Config: secure}).DialContext(ctx, "tcp", address)
	} else {
		nc, err = (&net.Dialer{Control: widen}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, fmt.Errorf("switch at %s: %w", target, err)
	}
	c, err := New(ctx, nc, cfg)
	if err != nil {
		return nil, fmt.Errorf("switch at %s: %w", target, err)
	}
	return c, nil
}

// Listen waits for switches at a target as Dial has it; with ssl they must show what secure asks for.
func Listen(ctx context.Context, target string, secure *tls.Config) (net.Listener, error) {
	network, address, err := split(target, secure)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: widen}
	lc.SetMultipathTCP(false) // it has no TCP_WINDOW_CLAMP
	if network != "ssl" {
		return lc.Listen(ctx, network, address)
	}
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, secure), nil
}

// CheckTarget says what is wrong with how a target is written.
func CheckTarget(target string, secure *tls.Config) error {
	network, address, err := split(target, secure)
	if err != nil || network == "unix" {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("switch at %q: want %s:HOST:PORT, an IPv6 address in brackets", target, network)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("switch at %q: port %q: want a number up to 65535", target, port)
	}
	return nil
}

func split(target string, secure *tls.Config) (network, address string, err error) {
	network, address, ok := strings.Cut(target, ":")
	switch {
	case !ok || network != "tcp" && network != "ssl" && network != "unix":
		return "", "", fmt.Errorf("switch at %q: want tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE", target)
	case network == "ssl" && secure == nil:
		return "", "", fmt.Errorf("switch at %q: ssl needs a key and certificates", target)
	}
	return network, address, nil
}
