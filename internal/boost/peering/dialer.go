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

// A Dialer keeps a path of a trunk connected that this agent has begun.
type Dialer struct {
	Config
	// TCP connects to the other agent's door at the path's end, from its beginning.
	TCP func(context.Context) (*net.TCPConn, error)
	// TLS has this agent's certificate, and knows the other one by its own. It is asked for each control connection, and told how
	// many before that have come to nothing since the last one that stood: each end may have a key of which the other has not
	// heard yet.
	TLS func(failed int) *tls.Config
	// Connections is how many data connections there are at most: as many as the agent that wants more of them wants.
	Connections int
	// Lingers is for how long nobody has to want a connection before it ends; 0: five seconds.
	Lingers time.Duration
	// Failed is called with what ended the control connection or kept it from beginning, before it is tried again.
	Failed func(error)
	// Numbers counts the data connections of all paths of the trunk, over all control connections.
	Numbers *atomic.Uint64

	failed int // control connections, one after the other, for which the two have not found together
}

// Pauses between two attempts that come to nothing: the last is what an agent that was away for long may wait for its
// trunks.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Run keeps the path connected until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	again := backoff.Backoff{First: firstPause, Last: lastPause}
	for ctx.Err() == nil {
		began := time.Now()
		err := d.once(ctx)
		if ctx.Err() != nil {
			return
		}
		d.Failed(err)
		if time.Since(began) > lastPause { // a worker that died has its next one, and its door was open all the time
			again.Reset()
			continue
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

// A control is a control connection, once the other agent has answered on it.
type control struct {
	met    chan struct{} // closed then; what follows is there since
	secret seal.Secret
	hello  frame.Hello // the other agent's
}

// once is one control connection, from its first packet to its end. The data connections are connected while its handshakes
// are under way, and wait for what they have to say first: that saves a round trip, and an agent that is away hears of one.
func (d *Dialer) once(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	tcp, err := d.dial(ctx)
	if err != nil {
		return err
	}
	c := &control{met: make(chan struct{})}
	k := d.keepers(c)
	all.Go(func() { k.run(ctx) })
	conn, err := d.greet(ctx, tcp, c)
	if err != nil {
		d.failed++
		return err
	}
	d.failed = 0
	defer conn.Close()
	down, err := d.Path.Up(c.secret, c.hello.Incarnation, c.hello.To)
	if err != nil {
		return err
	}
	close(c.met)
	w := &watcher{conn: conn, silence: d.Silence, wanted: k.wanted}
	err = w.watch(ctx)
	down(err)
	return err
}

func (d *Dialer) dial(ctx context.Context) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	return d.TCP(ctx)
}

// greet makes a control connection of one of TCP.
func (d *Dialer) greet(ctx context.Context, tcp *net.TCPConn, to *control) (c *tls.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	c = tls.Client(tcp, d.TLS(d.failed))
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err = c.HandshakeContext(ctx); err != nil {
		return c, fmt.Errorf("the other agent's certificate, or its view of this agent's: %w", err)
	}
	if err = say(c, d.hello(frame.Control, 0, versions.Trunk()), nil, 0); err != nil {
		return c, err
	}
	if to.hello, err = hear(c, nil, 0); err == nil {
		err = d.agrees(to.hello)
	}
	if err == nil {
		to.secret, err = seal.Export(c.ConnectionState())
	}
	return c, err
}

// data is one data connection, from its first packet to its end. What this end has to say follows its HELLO at once: only
// the other agent can read it, whether it has answered or not.
func (d *Dialer) data(ctx context.Context, c *control) error {
	conn, err := d.dial(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	select {
	case <-c.met:
	case <-ctx.Done(): // whether that has closed it already is a matter of luck
		conn.Close()
		return context.Cause(ctx)
	}
	number := d.Incarnation + d.Numbers.Add(1) // above those of an agent before, which the other one remembers
	if err := say(conn, d.hello(frame.Data, number, versions.Range{From: c.hello.To, To: c.hello.To}), &c.secret, seal.FromDialer); err != nil {
		conn.Close()
		return err
	}
	return d.Path.Serve(conn, number, c.secret, func() error {
		h, err := hear(conn, &c.secret, seal.ToDialer)
		if err == nil && h.Connection != number {
			err = fmt.Errorf("the other agent answers for data connection %d, asked was %d", h.Connection, number)
		}
		return err
	})
}
