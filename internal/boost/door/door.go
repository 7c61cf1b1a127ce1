package door

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
)

// Limits of what is not authenticated yet.
const (
	Pending = 64              // connections of one address
	Wait    = 2 * time.Second // until a connection has said who it is: a handshake over the longest path, 300 ms, and one loss
)

// tlsRecord is the first byte of a TLS handshake (RFC 8446 §5.1). A HELLO's is 1.
const tlsRecord = 22

// A Config is what a door needs to know. Its functions are called by several goroutines.
type Config struct {
	// TLS is of control connections. It asks for the other agent's certificate, and refuses everybody else's.
	TLS *tls.Config
	// Known says whether an agent of the network has the address.
	Known func(netip.Addr) bool
	// Secret is that of a trunk, on the path of a connection that calls, and whether there is one.
	Secret func(trunk uint64, of net.Conn) (seal.Secret, bool)
	// Control and Data get connections whose other end has proved who it is, without a deadline. They close them.
	Control func(*tls.Conn)
	Data    func(net.Conn, frame.Hello)
	// Count counts the others.
	Count func(Reason)
}

// A Reason says why a connection was closed.
type Reason string

// Reasons, as metrics name them.
const (
	Unknown  Reason = "unknown_address"   // no agent has the address
	Crowded  Reason = "too_many_pending"  // of this address wait as many as may
	Silent   Reason = "silent"            // it did not say who it is in time
	Garbled  Reason = "not_a_trunk"       // neither TLS nor a HELLO
	NoTrunk  Reason = "no_such_trunk"     // a HELLO of a trunk that is not there: it has ended, or never was
	Forged   Reason = "not_authentic"     // a HELLO with a MAC of somebody else
	Unproven Reason = "handshake_refused" // TLS with no certificate, or one that is not an agent's
	Full     Reason = "no_descriptor"     // this process may open no more files
)

// Serve takes connections until ctx ends or the listener does, and returns when all that waited are closed.
func Serve(ctx context.Context, l net.Listener, c Config) error {
	d := &door{Config: c, waiting: map[netip.Addr]int{}}
	ctx, end := context.WithCancel(ctx)
	defer d.all.Wait()
	defer end()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			d.take(ctx, conn)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // EMFILE, for instance: what ends meanwhile makes room
			d.Count(Full)
			rest(ctx)
		}
	}
}

// rest is the pause after a failure to accept: the connection stays in the kernel's queue, and would be offered at once.
func rest(ctx context.Context) {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

type door struct {
	Config
	all     sync.WaitGroup
	mu      sync.Mutex
	waiting map[netip.Addr]int
}

// take lets a connection of an agent's address wait, and closes all others.
func (d *door) take(ctx context.Context, c net.Conn) {
	from := addressOf(c)
	if !d.Known(from) {
		d.refuse(c, Unknown)
		return
	}
	if !d.enter(from) {
		d.refuse(c, Crowded)
		return
	}
	d.all.Go(func() {
		stop := context.AfterFunc(ctx, func() { c.Close() })
		accepted, why := d.meet(ctx, c)
		d.leave(from)
		switch {
		case !stop(): // the door closes
			c.Close()
		case accepted == nil:
			d.refuse(c, why)
		default:
			accepted()
		}
	})
}

func (d *door) refuse(c net.Conn, why Reason) {
	d.Count(why)
	c.Close()
}

func (d *door) enter(from netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[from] == Pending {
		return false
	}
	d.waiting[from]++
	return true
}

func (d *door) leave(from netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[from]--; d.waiting[from] == 0 {
		delete(d.waiting, from)
	}
}

func addressOf(c net.Conn) netip.Addr {
	a, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap().WithZone("")
}
