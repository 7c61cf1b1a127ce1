package hostd

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialLimit bounds one attempt to connect.
const dialLimit = 3 * time.Second

func newConnections() *connections {
	return &connections{dialer: net.Dialer{Timeout: dialLimit}}
}

// connections remembers what was dialled by one way: with the link gone, HTTP/2 would wait for
// answers that cannot come.
type connections struct {
	dialer net.Dialer

	mu     sync.Mutex
	open   []net.Conn
	closed bool
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	if len(c.open) > 8 { // the transport keeps one or two; the others ended
		c.open = c.open[1:]
	}
	c.open = append(c.open, conn)
	return conn, nil
}

func (c *connections) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.open {
		conn.Close()
	}
}
