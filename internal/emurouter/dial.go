package emurouter

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// dial connects with the controller from inside the namespace that leads to it.
func (c *Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Netns == "" {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	type dialled struct {
		net.Conn
		error
	}
	done := make(chan dialled, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		conn, err := dialInside(ctx, c.Netns, network, address)
		done <- dialled{conn, err}
	}()
	d := <-done
	return d.Conn, d.error
}

func dialInside(ctx context.Context, netns, network, address string) (net.Conn, error) {
	ns, err := os.Open(netns)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the namespace %s: %w", netns, err)
	}
	return new(net.Dialer).DialContext(ctx, network, address) // the socket is made on this thread
}
