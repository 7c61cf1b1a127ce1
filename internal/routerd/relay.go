package routerd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/api"
)

const (
	relayLimit   = 1024 // connections at once
	relayDialing = 5 * time.Second
)

// A relay carries the control channel of hosts that have no locator yet, byte by byte, to the
// controller (docs/protocol.md §5.1). It serves link-local addresses alone: who is not on a link has no
// business here.
type relay struct {
	listener net.Listener
	to       api.Endpoint
	log      *slog.Logger
	slots    chan struct{}
	wg       sync.WaitGroup
}

// newRelay listens on a port of the kernel's choice, until ctx ends.
func newRelay(ctx context.Context, to api.Endpoint, log *slog.Logger) (*relay, error) {
	l, err := net.Listen("tcp6", "[::]:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, to: to, log: log, slots: make(chan struct{}, relayLimit)}
	context.AfterFunc(ctx, func() { l.Close() })
	r.wg.Go(func() { r.serve(ctx) })
	return r, nil
}

// Port is the TCP port for HELLOs.
func (r *relay) Port() uint16 { return uint16(r.listener.Addr().(*net.TCPAddr).Port) }

func (r *relay) serve(ctx context.Context) {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			r.log.Warn("relay", "error", err)
			time.Sleep(100 * time.Millisecond) // out of descriptors: others have to close first
			continue
		}
		r.admit(ctx, conn.(*net.TCPConn))
	}
}

// admit refuses strangers and what is too much: the host asks again.
func (r *relay) admit(ctx context.Context, host *net.TCPConn) {
	if !host.LocalAddr().(*net.TCPAddr).IP.IsLinkLocalUnicast() {
		host.Close()
		return
	}
	select {
	case r.slots <- struct{}{}:
	default:
		r.log.Warn("relay: a host was turned away", "connections", relayLimit)
		host.Close()
		return
	}
	r.wg.Go(func() {
		defer func() { <-r.slots }()
		r.carry(ctx, host)
	})
}

func (r *relay) carry(ctx context.Context, host *net.TCPConn) {
	defer host.Close()
	dialer := net.Dialer{Timeout: relayDialing}
	c, err := dialer.DialContext(ctx, r.to.Network, r.to.Address)
	if err != nil {
		r.log.Debug("relay: the controller does not answer", "error", err)
		host.SetLinger(0) // a reset: the host tries again later
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { host.Close(); c.Close() })()
	var both sync.WaitGroup
	both.Go(func() { half(c.(halfCloser), host) })
	both.Go(func() { half(host, c.(halfCloser)) })
	both.Wait()
}

// A halfCloser is a TCP or a Unix connection.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// half carries one direction to its end, and then ends it there too. An error ends both.
func half(to, from halfCloser) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.CloseWrite()
}
