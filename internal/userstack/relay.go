package userstack

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	relayLimit   = 1024 // connections at once
	relayDialing = 5 * time.Second
)

// A Relay carries the control channel of a router's hosts, byte by byte, to the controller (docs/protocol.md
// §5.1), until its listener is closed.
type Relay struct {
	dial  func(context.Context) (net.Conn, error)
	log   *slog.Logger
	slots chan struct{}
	wg    sync.WaitGroup
}

// NewRelay takes what the listener accepts. A connection to the controller has both directions of its own to close, as
// those of TCP have.
func NewRelay(l *Listener, dial func(context.Context) (net.Conn, error), log *slog.Logger) *Relay {
	r := &Relay{dial: dial, log: log, slots: make(chan struct{}, relayLimit)}
	r.wg.Go(func() { r.serve(l) })
	return r
}

// Wait returns when nothing runs any more; the listener's stack is closed.
func (r *Relay) Wait() { r.wg.Wait() }

func (r *Relay) serve(l *Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed
		}
		host := conn.(*Conn)
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

func (r *Relay) carry(ctx context.Context, host *Conn) {
	defer host.Close()
	once, cancel := context.WithTimeout(ctx, relayDialing)
	c, err := r.dial(once)
	cancel()
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
