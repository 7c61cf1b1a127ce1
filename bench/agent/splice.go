package agent

import (
	"context"
	"io"
	"net"
	"sync"
)

// Splice passes each connection to addr on to another address until ctx ends: by splice(2), by which bytes never leave the
// kernel. It is the least that a relay in user space costs.
func Splice(ctx context.Context, addr, to string) error {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // whose sockets do not splice
	l, err := lc.Listen(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go spliceTo(ctx, c.(*net.TCPConn), to) // ends with its connection, or with the process
	}
}

func spliceTo(ctx context.Context, c *net.TCPConn, to string) {
	defer c.Close()
	far, err := dial(ctx, "tcp4", to)
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { pass(far.(*net.TCPConn), c) })
	both.Go(func() { pass(c, far.(*net.TCPConn)) })
	both.Wait()
}

// pass passes one direction on to its end. One that breaks ends the other as well.
func pass(to, from *net.TCPConn) {
	_, err := io.Copy(to, from) // package net uses splice(2) between two of these
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}
