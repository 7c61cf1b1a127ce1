package agent

import (
	"context"
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

// A RelayConn is one side of what a relay carries: a connection of TCP, of the kernel's or one in user space, or of a
// Unix socket.
type RelayConn interface {
	net.Conn
	CloseWrite() error
}

// A RelayHost is a host's side.
type RelayHost interface {
	RelayConn
	Abort() // ends it by a reset: the host tries again later
}

// A Relay carries the control channel of hosts that have no locator yet, byte by byte, to the controller
// (docs/protocol.md §5.1).
type Relay struct {
	dial  func(context.Context) (net.Conn, error)
	log   *slog.Logger
	slots chan struct{}
	wg    sync.WaitGroup
}

// NewRelay takes the hosts that accept returns, until that returns an error: its listener is closed. What is carried
// then ends too. The connection to the controller is a [RelayConn].
func NewRelay[H RelayHost](accept func() (H, error), dial func(context.Context) (net.Conn, error), log *slog.Logger) *Relay {
	r := &Relay{dial: dial, log: log, slots: make(chan struct{}, relayLimit)}
	r.wg.Go(func() { r.serve(func() (RelayHost, error) { return accept() }) })
	return r
}

// RelayTo dials where the router has or had its own session: who leads. Where that one is gone the host's attempt fails,
// and the host's next one finds where the router went; when the router goes to another one, hosts follow at once.
func RelayTo(controllers *api.Controllers, dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		endpoint, moved := controllers.Best()
		to, err := api.ParseEndpoint(endpoint)
		if err != nil {
			return nil, err
		}
		c, err := dial(ctx, to.Network, to.Address)
		if err != nil {
			return nil, err
		}
		led := &ledConn{RelayConn: c.(RelayConn), closed: make(chan struct{})}
		go func() { // ends with the connection
			select {
			case <-moved:
				led.Close()
			case <-led.closed:
			}
		}()
		return led, nil
	}
}

// A ledConn leads to a controller for as long as that one leads.
type ledConn struct {
	RelayConn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *ledConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.RelayConn.Close()
}

// Wait returns when nothing runs any more; the listener is closed.
func (r *Relay) Wait() { r.wg.Wait() }

func (r *Relay) serve(accept func() (RelayHost, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		host, err := accept()
		if err != nil {
			return
		}
		select {
		case r.slots <- struct{}{}:
		default:
			r.log.Warn("relay: a host was turned away", "host", host.RemoteAddr(), "connections", relayLimit)
			host.Abort()
			continue
		}
		r.wg.Go(func() {
			defer func() { <-r.slots }()
			r.carry(ctx, host)
		})
	}
}

func (r *Relay) carry(ctx context.Context, host RelayHost) {
	defer host.Close()
	once, cancel := context.WithTimeout(ctx, relayDialing)
	c, err := r.dial(once)
	cancel()
	if err != nil {
		r.log.Debug("relay: the controller does not answer", "error", err)
		host.Abort()
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { host.Abort(); c.Close() })()
	var both sync.WaitGroup
	both.Go(func() { half(c.(RelayConn), host) })
	both.Go(func() { half(host, c.(RelayConn)) })
	both.Wait()
}

// half carries one direction to its end, and then ends it there too. An error ends both.
func half(to, from RelayConn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.CloseWrite() //nolint:errcheck // who has gone meanwhile needs no end
}
