package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A door is one socket that is listened on, with what is counted at it.
type door struct {
	g     *Gateway
	at    socket
	want  atomic.Pointer[Listen] // changes with the configuration; flows keep what they began with
	room  *room
	count counts

	expects atomic.Int32 // 1 while a place is kept for the next client

	closing atomic.Bool
	ended   sync.WaitGroup // the loops that take from the socket
	face    face
}

// A face is what differs between connections and datagrams.
type face interface {
	serve()                   // takes clients until the door closes
	drain()                   // no more clients: what waits in a queue is taken first
	conn() syscall.Conn       // the socket
	hand() []inheritedSession // lets go of the socket, which another process has too; the sessions go along
	abort()                   // ends the flows that are left
}

// counts are what metrics and status tell of a door.
type counts struct {
	accepted, full, crowded, unknown, failed, retried, broken, dropped atomic.Uint64
	up, down                                                           atomic.Uint64 // bytes
}

// open opens the socket, or takes the one that the gateway before us had. Nobody is let in before start.
func (g *Gateway) open(at socket, l Listen, had *inherited) (*door, error) {
	d := &door{g: g, at: at, room: newRoom(l.Max)}
	d.want.Store(&l)
	var err error
	switch at.network {
	case "udp4", "udp6":
		d.face, err = newPackets(d, had)
	default:
		d.face, err = newStreams(d, had)
	}
	if err != nil {
		return nil, explainListen(l, err)
	}
	return d, nil
}

// start lets clients in.
func (d *door) start() { d.ended.Go(d.face.serve) }

// explainListen says what to do about a socket that cannot be had.
func explainListen(l Listen, err error) error {
	var sys *os.SyscallError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen on %s: another program has it: `ss -lntup` shows which: %w", l.At(), syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s: this host has no such address: %w", l.At(), syscall.EADDRNOTAVAIL)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen on %s: ports below 1024 need root or the capability net_bind_service: %w", l.At(), syscall.EACCES)
	case errors.As(err, &sys):
		return fmt.Errorf("listen on %s: %w", l.At(), sys.Err)
	}
	return fmt.Errorf("listen on %s: %w", l.At(), err)
}

// enter waits until the gateway and this door have room for another flow.
func (d *door) enter() bool {
	if !d.room.enter(d.closing.Load) {
		return false
	}
	if !d.g.room.enter(d.closing.Load) {
		d.room.leave()
		return false
	}
	return true
}

func (d *door) leave() {
	d.g.room.leave()
	d.room.leave()
}

// flows are those of this door. The place that is kept for the next client is none.
func (d *door) flows() int { return max(0, d.room.count()-int(d.expects.Load())) }

// close takes no more clients; flows go on.
func (d *door) close() {
	if d.closing.Swap(true) {
		return
	}
	d.room.wake()
	d.g.room.wake()
	d.face.drain()
	d.ended.Wait()
}

// hand lets go of the socket; flows of connections go on here.
func (d *door) hand() []inheritedSession {
	d.closing.Store(true)
	d.room.wake()
	d.g.room.wake()
	return d.face.hand()
}

// change gives new flows what the configuration says now.
func (d *door) change(l Listen) {
	d.want.Store(&l)
	d.room.resize(l.Max)
}

// listenStream opens a listening socket. Keepalive is set on it: what it accepts has it from there.
func (g *Gateway) listenStream(at socket) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1}
	lc.SetMultipathTCP(false) // its sockets cost more, and give nothing without two paths
	if at.network != "unix" {
		lc.Control = func(_, _ string, c syscall.RawConn) error { return keepAlives(c, g.cfg.Load().KeepAlive) }
	} else if err := removeStale(at.address); err != nil {
		return nil, err
	}
	return lc.Listen(context.Background(), at.network, at.address)
}

// removeStale takes away a Unix socket that nobody answers at.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // there is none, or listening says what is wrong
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("something that is no socket has that name")
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return syscall.EADDRINUSE
	}
	return os.Remove(path)
}
