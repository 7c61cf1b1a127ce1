package peering

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/backoff"
)

// A Dialer keeps the trunk connected that this agent has begun.
type Dialer struct {
	Config
	// TCP connects to the other agent's door.
	TCP func(context.Context) (*net.TCPConn, error)
	// TLS has this agent's certificate, and knows the other one by its own.
	TLS *tls.Config
	// Connections is how many data connections there are to be.
	Connections int
	// Failed is called with what ended the control connection or kept it from beginning, before it is tried again.
	Failed func(error)

	numbers atomic.Uint64 // of data connections, over all control connections
}

// Pauses between two attempts: the first is what a worker takes to begin anew, the last is what an agent that was away
// for long may wait for its trunks.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Run keeps the trunk connected until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	again := backoff.Backoff{First: firstPause, Last: lastPause}
	for ctx.Err() == nil {
		began := time.Now()
		err := d.once(ctx)
		if ctx.Err() != nil {
			return
		}
		d.Failed(err)
		if time.Since(began) > lastPause {
			again.Reset()
		}
		rest(ctx, again.Next())
	}
}

// rest pauses, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// once is one control connection, from its first packet to its end.
func (d *Dialer) once(ctx context.Context) error {
	conn, secret, h, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	down := d.Trunk.Up(secret, h.Incarnation)
	var all sync.WaitGroup
	data, end := context.WithCancel(ctx)
	for range d.Connections {
		all.Go(func() { d.keep(data, secret, h) })
	}
	err = watch(ctx, conn, d.Silence)
	down()
	end()
	all.Wait()
	return err
}

// begin makes the control connection.
func (d *Dialer) begin(ctx context.Context) (c *tls.Conn, s seal.Secret, h frame.Hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	tcp, err := d.TCP(ctx)
	if err != nil {
		return nil, s, h, err
	}
	c = tls.Client(tcp, d.TLS)
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err = c.HandshakeContext(ctx); err != nil {
		return c, s, h, fmt.Errorf("the other agent's certificate, or its view of this agent's: %w", err)
	}
	if err = say(c, d.hello(frame.Control, 0, versions.Trunk()), nil, 0); err != nil {
		return c, s, h, err
	}
	if h, err = hear(c, nil, 0); err == nil {
		err = d.agrees(h)
	}
	if err == nil {
		s, err = seal.Export(c.ConnectionState())
	}
	return c, s, h, err
}

// keep has one data connection as long as ctx lasts.
func (d *Dialer) keep(ctx context.Context, secret seal.Secret, peer frame.Hello) {
	again := backoff.Backoff{First: firstPause, Last: lastPause}
	for ctx.Err() == nil {
		began := time.Now()
		d.data(ctx, secret, peer) //nolint:errcheck // what the other agent did wrong the trunk has told; a path that is gone is tried again
		if time.Since(began) > lastPause {
			again.Reset()
		}
		rest(ctx, again.Next())
	}
}

// data is one data connection, from its first packet to its end.
func (d *Dialer) data(ctx context.Context, secret seal.Secret, peer frame.Hello) error {
	dialing, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	conn, err := d.TCP(dialing)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	number := d.Incarnation + d.numbers.Add(1) // above those of an agent before, which the other one remembers
	if err := say(conn, d.hello(frame.Data, number, versions.Range{From: peer.To, To: peer.To}), &secret, seal.FromDialer); err != nil {
		conn.Close()
		return err
	}
	h, err := hear(conn, &secret, seal.ToDialer)
	if err == nil && h.Connection != number {
		err = fmt.Errorf("the other agent answers for data connection %d, asked was %d", h.Connection, number)
	}
	if err != nil {
		conn.Close()
		return err
	}
	return d.Trunk.Serve(conn, number, secret)
}
