package emubench

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// loadPort is where sinks listen.
const loadPort = 7

// A Load is what is sent through a chain as fast as it goes.
type Load struct {
	Frame int // bytes of an Ethernet frame without checksum; 0: one TCP stream
	Skip  time.Duration
	Count time.Duration
}

// headers are those of Ethernet, IPv6 and UDP.
const headers = 14 + 40 + 8

// spare is how much longer than it counts a load may take.
const spare = 10 * time.Second

// Through sends the load through the chain and says what came.
func (l Load) Through(ctx context.Context, c *Chain) (Flow, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.Skip+l.Count+spare, fmt.Errorf("too little comes through in %v", l.Skip+l.Count+spare))
	defer cancel()
	w := window{skip: l.Skip, count: l.Count}
	send := l.datagrams
	if l.Frame == 0 {
		send = l.stream
	}
	if err := send(ctx, c, &w); err != nil {
		return Flow{}, fmt.Errorf("%s, %d routers: %w", c.Kind, c.Routers, err)
	}
	return w.sum, nil
}

func (l Load) datagrams(ctx context.Context, c *Chain, w *window) error {
	in, err := c.openSink()
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := c.openFlood()
	if err != nil {
		return err
	}
	defer unix.Close(out)
	sending, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- flood(sending, out, l.Frame-headers) }() // ends with sending
	err = drain(ctx, in, w)
	stop()
	return or(<-ended, err)
}

func (l Load) stream(ctx context.Context, c *Chain, w *window) error {
	var in net.Listener
	err := c.to.In(func() (err error) {
		in, err = net.Listen("tcp6", c.target().String())
		return err
	})
	if err != nil {
		return err
	}
	defer in.Close()
	counted := make(chan error, 1)
	go func() { counted <- read(ctx, in, w) }() // ends with the window or ctx
	out, err := c.openStream(ctx)
	if err != nil {
		return err
	}
	go stream(out) // ends when it is closed
	err = <-counted
	out.Close()
	return err
}
