package ofconn

import (
	"context"
	"net"
	"sync"
	"time"
)

// shaking is how many peers may be in the middle of a handshake; more wait to be accepted.
const shaking = 128

// A Handler is told of those who connect; its methods are called from goroutines of their own.
type Handler interface {
	// Switch has a connection until it returns.
	Switch(*Conn)
	// Refused tells who did not become one, and why.
	Refused(net.Addr, error)
}

// Serve takes the switches that connect to l until ctx ends, and returns when all are gone. A peer that
// takes its time holds up nobody.
func Serve(ctx context.Context, l net.Listener, cfg Config, h Handler) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	room := make(chan struct{}, shaking)
	for {
		nc, err := l.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil { // too many open files, for one: those that are there stay
			h.Refused(l.Addr(), err)
			pause(ctx)
			continue
		}
		room <- struct{}{}
		all.Go(func() { serve(ctx, nc, cfg, h, func() { <-room }) })
	}
}

// pause waits a moment before the next attempt to accept.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

func serve(ctx context.Context, nc net.Conn, cfg Config, h Handler, shaken func()) {
	c, err := New(ctx, nc, cfg)
	shaken()
	if err != nil {
		h.Refused(nc.RemoteAddr(), err)
		return
	}
	stop := context.AfterFunc(ctx, func() { c.end(ErrClosed) })
	defer stop()
	defer c.Close()
	h.Switch(c)
}
