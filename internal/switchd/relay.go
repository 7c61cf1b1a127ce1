package switchd

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/userstack"
)

const (
	relayLimit   = 1024 // connections at once at one switch
	relayDialing = 5 * time.Second
)

// A relay carries the control channel of a switch's hosts, byte by byte, to the controller (docs/protocol.md
// §5.1), until its listener is closed.
type relay struct {
	to    api.Endpoint
	log   *slog.Logger
	slots chan struct{}
	wg    sync.WaitGroup
}

func newRelay(l *userstack.Listener, to api.Endpoint, log *slog.Logger) *relay {
	r := &relay{to: to, log: log, slots: make(chan struct{}, relayLimit)}
	r.wg.Go(func() { r.serve(l) })
	return r
}

// wait returns when nothing runs any more; the listener's stack is closed.
func (r *relay) wait() { r.wg.Wait() }

func (r *relay) serve(l *userstack.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed
		}
		host := conn.(*userstack.Conn)
		select {
		case r.slots <- struct{}{}:
		default:
			r.log.Warn("relay: a host was turned away", "port", host.Port(), "connections", relayLimit)
			host.Abort()
			continue
		}
		r.wg.Go(func() {
			defer func() { <-r.slots }()
			r.carry(ctx, host)
		})
	}
}

func (r *relay) carry(ctx context.Context, host *userstack.Conn) {
	defer host.Close()
	dialer := net.Dialer{Timeout: relayDialing}
	c, err := dialer.DialContext(ctx, r.to.Network, r.to.Address)
	if err != nil {
		r.log.Debug("relay: the controller does not answer", "error", err)
		host.Abort() // the host tries again later
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { host.Abort(); c.Close() })()
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
