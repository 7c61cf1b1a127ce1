package ofconn

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A Conn is a connection with a switch after the handshake. Its methods may be called from several
// goroutines at once.
type Conn struct {
	cfg      Config
	nc       net.Conn
	in       *bufio.Reader
	out      *outbox
	calls    calls
	version  ofp.Version
	features ofp.FeaturesReply

	packetIns chan ofp.PacketIn
	events    chan ofp.Message
	counts    counts
	bundles   atomic.Uint32 // the last one's number

	once  sync.Once
	cause error         // why it ended; valid after ended
	ended chan struct{} // closed when it has ended
	loops sync.WaitGroup
}

// PeerCertificate is what the switch showed; nil where the channel is in the clear.
func (c *Conn) PeerCertificate() *x509.Certificate {
	secure, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	if shown := secure.ConnectionState().PeerCertificates; len(shown) > 0 {
		return shown[0]
	}
	return nil
}

// counts are written by one goroutine and read by any.
type counts struct{ packetIns, dropped, damaged atomic.Uint64 }

// Counts are what a Conn has seen.
type Counts struct {
	PacketIns uint64 // packets that the switch punted
	Dropped   uint64 // those of them that nobody took in time
	Damaged   uint64 // messages that could not be read
}

// ErrClosed is the end that Close makes.
var ErrClosed = errors.New("closed")

// Errors of a Conn that callers may tell apart.
var (
	ErrVersion = errors.New("no common version of OpenFlow")
	ErrSilent  = errors.New("the switch has fallen silent")
	ErrBehind  = errors.New("nobody takes the switch's messages")
	ErrDamaged = errors.New("the switch sends what cannot be read")
)

// New shakes hands with the switch at the other end of nc, which the Conn owns from here on: when New
// fails, nc is closed.
func New(ctx context.Context, nc net.Conn, cfg Config) (*Conn, error) {
	c := &Conn{cfg: cfg.filled(), nc: nc, ended: make(chan struct{})}
	c.in = bufio.NewReaderSize(nc, ofp.MaxLen)
	c.out = newOutbox(c.cfg.Outgoing)
	c.calls.open = map[uint32]*call{}
	c.packetIns = make(chan ofp.PacketIn, c.cfg.PacketIns)
	c.events = make(chan ofp.Message, c.cfg.Events)
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Handshake)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	err := c.hello()
	if !stop() && err != nil {
		err = fmt.Errorf("no HELLO from the switch: %w", context.Cause(ctx))
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.loops.Go(c.read)
	c.loops.Go(c.write)
	if err := c.learn(ctx); err != nil {
		c.end(err)
		c.loops.Wait()
		return nil, err
	}
	return c, nil
}

// Version is what the HELLOs agreed on.
func (c *Conn) Version() ofp.Version { return c.version }

// Features are what the switch said that it is.
func (c *Conn) Features() ofp.FeaturesReply { return c.features }

// RemoteAddr is the switch's address.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// PacketIns are the packets that the switch punts. It is closed when the Conn has ended.
func (c *Conn) PacketIns() <-chan ofp.PacketIn { return c.packetIns }

// Events are the switch's other messages that answer nothing: ports, flows that ended, roles, and
// errors about what Send sent. It is closed when the Conn has ended.
func (c *Conn) Events() <-chan ofp.Message { return c.events }

// Counts are what it has seen so far.
func (c *Conn) Counts() Counts {
	return Counts{c.counts.packetIns.Load(), c.counts.dropped.Load(), c.counts.damaged.Load()}
}

// Done is closed when the Conn has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Err is why the Conn has ended, nil while it has not.
func (c *Conn) Err() error {
	select {
	case <-c.ended:
		return c.cause
	default:
		return nil
	}
}

// Close ends the Conn and waits until its goroutines are gone.
func (c *Conn) Close() error {
	c.end(ErrClosed)
	c.loops.Wait()
	return nil
}

// end lets go of everything that waits for the switch.
func (c *Conn) end(cause error) {
	c.once.Do(func() {
		c.cause = cause
		close(c.ended)
		c.out.close(cause)
		c.calls.failAll(cause)
		c.nc.Close() // last: over TLS it may wait for a peer that does not read
	})
}
