package scaffold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// DefaultDaemon is where the host daemon is asked when neither Host.Daemon nor $SCAFFOLD_API says else.
const DefaultDaemon = "unix:/run/scaffold/hostd.sock"

// ErrUnknownService is returned, wrapped, for a name that no service has.
var ErrUnknownService = errors.New("no such service")

// A Host opens sockets through one host daemon. The zero Host is the one of this machine.
type Host struct {
	Daemon string // endpoint of its API, such as "unix:/run/scaffold/hostd.sock"
}

// Dial connects to an instance of a service; see [Host.Dial].
func Dial(network, address string) (net.Conn, error) {
	return (&Host{}).Dial(context.Background(), network, address)
}

// Listen serves a service on this host; see [Host.Listen].
func Listen(network, address string) (net.Listener, error) {
	return (&Host{}).Listen(context.Background(), network, address)
}

// ListenPacket serves a service's datagrams on this host; see [Host.ListenPacket].
func ListenPacket(network, address string) (net.PacketConn, error) {
	return (&Host{}).ListenPacket(context.Background(), network, address)
}

// Dial connects to an instance of the service that the network chooses. The network is "tcp" or "udp".
// Errors of the connection are those of package net: EHOSTUNREACH for a service without an instance,
// ECONNREFUSED for a port that none of its instances serves.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", network, address, err)
	}
	var d net.Dialer
	return d.DialContext(ctx, network+"6", to)
}

// Listen makes this host an instance of the service: from now on flows to the port may reach it. Closing
// the listener ends that, and so does the end of the process. The network is "tcp".
func (h *Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	at, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
	}
	lc := net.ListenConfig{Control: freebind}
	return lc.Listen(ctx, network+"6", at)
}

// ListenPacket is Listen for the network "udp".
func (h *Host) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	at, err := h.resolve(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
	}
	lc := net.ListenConfig{Control: freebind}
	return lc.ListenPacket(ctx, network+"6", at)
}

// Lookup returns the address of a service, the one that programs connect to and listen on.
func (h *Host) Lookup(ctx context.Context, service string) (netip.Addr, error) {
	client, base, err := api.Dial(h.daemon())
	if err != nil {
		return netip.Addr{}, err
	}
	defer client.CloseIdleConnections()
	admin := apiv1connect.NewAdminClient(client, base)
	res, err := admin.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: service}))
	if connect.CodeOf(err) == connect.CodeNotFound {
		return netip.Addr{}, fmt.Errorf("%q: %w", service, ErrUnknownService)
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ask the host daemon at %s for %q: %w", h.daemon(), service, err)
	}
	return netip.ParseAddr(res.Msg.Address)
}

// resolve turns "web:80" into an address that package net takes.
func (h *Host) resolve(ctx context.Context, network, address string) (string, error) {
	if network != "tcp" && network != "udp" {
		return "", net.UnknownNetworkError(network)
	}
	service, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	addr, err := h.Lookup(ctx, service)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addr.String(), port), nil
}

func (h *Host) daemon() string {
	if h.Daemon != "" {
		return h.Daemon
	}
	if e := os.Getenv("SCAFFOLD_API"); e != "" {
		return e
	}
	return DefaultDaemon
}

// freebind lets a socket bind the service's address, which is on no interface.
func freebind(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1) }); e != nil {
		return e
	}
	return err
}
