package emurouter

import (
	"context"
	"net"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// dial connects with the controller from inside the namespace that leads to it.
func (c *Config) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	if c.Netns == "" {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	err = nsenter.DoAt(c.Netns, func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address) // the socket is made on this thread
		return err
	})
	return conn, err
}
