package routerd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/router/agent"
)

// A relay is that of [agent.Relay] for hosts beside the kernel's interfaces. It serves link-local addresses alone: who
// is not on a link has no business here.
type relay struct {
	*agent.Relay
	listener net.Listener
	log      *slog.Logger
}

// newRelay listens on a port of the kernel's choice, until ctx ends.
func newRelay(ctx context.Context, to *api.Controllers, log *slog.Logger) (*relay, error) {
	l, err := net.Listen("tcp6", "[::]:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	r := &relay{listener: l, log: log}
	r.Relay = agent.NewRelay(r.accept, agent.RelayTo(to, new(net.Dialer).DialContext), log)
	return r, nil
}

// Port is the TCP port for HELLOs.
func (r *relay) Port() uint16 { return uint16(r.listener.Addr().(*net.TCPAddr).Port) }

// accept refuses who is no member.
func (r *relay) accept() (kernelHost, error) {
	for {
		conn, err := r.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return kernelHost{}, err
		case err != nil:
			r.log.Warn("relay", "error", err)
			time.Sleep(100 * time.Millisecond) // out of descriptors: others have to close first
			continue
		}
		if host := (kernelHost{conn.(*net.TCPConn)}); host.LocalAddr().(*net.TCPAddr).IP.IsLinkLocalUnicast() {
			return host, nil
		}
		conn.Close()
	}
}

// A kernelHost is a connection of the kernel's.
type kernelHost struct{ *net.TCPConn }

// Abort resets the connection.
func (h kernelHost) Abort() {
	h.SetLinger(0)
	h.Close()
}
