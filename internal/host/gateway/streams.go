package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold"
)

// streams takes connections at a door.
type streams struct {
	d  *door
	ln acceptor

	mu   sync.Mutex
	live map[*relay]struct{}
}

// An acceptor is a listener whose waiting can be ended.
type acceptor interface {
	net.Listener
	syscall.Conn
	SetDeadline(time.Time) error
}

func newStreams(d *door, had *inherited) (*streams, error) {
	s := &streams{d: d, live: map[*relay]struct{}{}}
	ln, err := had.listener(d.at)
	if ln == nil && err == nil {
		ln, err = d.g.listenStream(d.at)
	}
	if err != nil {
		return nil, err
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(true) // also of one that we were given
	}
	s.ln = ln.(acceptor) // as package net's are
	return s, nil
}

// errorPause is what accepting waits after an error: most are of open files or memory, and pass.
const errorPause = 50 * time.Millisecond

func (s *streams) serve() {
	for s.d.enter() {
		s.d.expects.Store(1)
		c, err := s.ln.Accept()
		s.d.expects.Store(0)
		if err == nil {
			s.take(c)
			continue
		}
		s.d.leave()
		if s.d.closing.Load() || errors.Is(err, net.ErrClosed) {
			return
		}
		s.d.g.complain("accept at "+s.d.at.String(), err)
		time.Sleep(errorPause)
	}
}

// take serves a client that came; it has entered.
func (s *streams) take(c net.Conn) {
	s.d.count.accepted.Add(1)
	from := addrOf(c.RemoteAddr())
	if !s.d.g.crowd.enter(from) {
		s.d.count.crowded.Add(1)
		reset(c)
		s.d.leave()
		return
	}
	s.d.g.flows.Go(func() {
		defer s.d.leave()
		defer s.d.g.crowd.leave(from)
		s.flow(c.(stream))
	})
}

// addrOf is the address of a client; not valid of a Unix socket.
func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr()
	case *net.UDPAddr:
		return a.AddrPort().Addr()
	}
	return netip.Addr{}
}

// flow carries one connection to its end.
func (s *streams) flow(c stream) {
	began, l := time.Now(), s.d.want.Load()
	var moved [2]uint64
	r := &relay{client: c, moved: [2]func(int){
		func(n int) { moved[0] += uint64(n); s.d.count.up.Add(uint64(n)) },
		func(n int) { moved[1] += uint64(n); s.d.count.down.Add(uint64(n)) },
	}}
	left := tries
	r.again = func() (*net.TCPConn, error) { return s.connect(c, l, &left) }
	var err error
	if r.server, err = s.connect(c, l, &left); err != nil {
		s.refuse(c, l, err)
		return
	}
	s.d.g.dialed.Observe(time.Since(began).Seconds())
	if !s.add(r) {
		r.abort()
		return
	}
	err = r.run()
	s.remove(r)
	if err != nil {
		s.d.count.broken.Add(1)
	}
	if s.d.g.cfg.Load().LogFlows {
		s.d.g.log.Info("flow", "at", l.At(), "client", c.RemoteAddr().String(), "name", l.Target(),
			"took", time.Since(began).Round(time.Microsecond), "up", moved[0], "down", moved[1], "end", ending(err))
	}
}

func ending(err error) string {
	if err == nil {
		return "closed"
	}
	return cause(err)
}

// cause is the innermost error: the sockets' addresses stand beside it already.
func cause(err error) string {
	var sys *os.SyscallError
	switch {
	case errors.Is(err, scaffold.ErrNoDaemon): // which names its socket
		return err.Error() + " Start it, or name its socket by --daemon"
	case errors.As(err, &sys):
		return sys.Err.Error()
	}
	return err.Error()
}

// connect opens a connection to the name behind the door and says who the client is, where that is asked for.
func (s *streams) connect(c stream, l *Listen, left *int) (*net.TCPConn, error) {
	g := s.d.g
	addr, err := g.names.find(context.Background(), l.Service)
	if err != nil {
		s.d.count.unknown.Add(1)
		return nil, fmt.Errorf("name %s: %w", l.Service, err)
	}
	d := newDialer(g.cfg.Load().Connect, g.cfg.Load().KeepAlive, func() { s.d.count.retried.Add(1) })
	server, err := d.dial(g.ctx, netip.AddrPortFrom(addr, l.To), left)
	if err != nil || l.Proxy == 0 {
		return server, err
	}
	header, err := proxyHeader(l.Proxy, c.RemoteAddr(), c.LocalAddr())
	if err == nil {
		_, err = server.Write(header)
	}
	if err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}

// refuse tells a client that nobody serves: by a reset, as a server's host would.
func (s *streams) refuse(c stream, l *Listen, err error) {
	s.d.count.failed.Add(1)
	reset(c)
	s.d.g.complain("connect to "+l.Target(), err)
	if s.d.g.cfg.Load().LogFlows {
		s.d.g.log.Info("flow", "at", l.At(), "client", c.RemoteAddr().String(), "name", l.Target(), "end", "no server: "+cause(err))
	}
}

func (s *streams) add(r *relay) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return false
	}
	s.live[r] = struct{}{}
	return true
}

func (s *streams) remove(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, r)
}

// drain closes the socket with nothing in its queue, for what is there would be reset: first no new handshake
// is begun, then those under way end, then all of them are taken.
func (s *streams) drain() {
	if s.d.at.network != "unix" {
		s.d.g.complain("close "+s.d.at.String(), deaf(s.ln))
		_, err := settle(s.ln.Addr())
		s.d.g.complain("handshakes at "+s.d.at.String(), err)
	}
	_ = s.ln.SetDeadline(time.Now()) // of an open listener
	s.d.ended.Wait()
	for s.d.g.room.try() {
		s.d.room.add()
		c, err := acceptNow(s.ln)
		if err != nil {
			s.d.leave()
			break
		}
		s.take(c)
	}
	s.ln.Close()
}

// nowhere is the number of an interface that there is not.
const nowhere = 1<<31 - 1

// deaf has a listening socket meet no packet that would begin a connection, by binding it to an interface that there is
// not: the sender is refused, as it will be when the socket is closed. Handshakes that have begun are sockets of their own
// to the kernel, and go on. It needs no right on a socket that is bound to none (Linux 5.7); a filter that drops SYNs
// (SO_ATTACH_FILTER) does on 6.18.44, where it asks for CAP_NET_ADMIN, which a gateway is not to have.
func deaf(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	fail := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere)
	})
	return errors.Join(fail, err)
}

// acceptNow takes a connection that is in the queue already; package net, past its deadline, does not look.
func acceptNow(ln syscall.Conn) (c net.Conn, err error) {
	raw, err := ln.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if fail := raw.Control(func(l uintptr) { fd, _, err = unix.Accept4(int(l), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC) }); fail != nil {
		return nil, fail
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close()
	return net.FileConn(f)
}

func (s *streams) conn() syscall.Conn { return s.ln }

// hand stops taking: the queue is another process's.
func (s *streams) hand() []inheritedSession {
	_ = s.ln.SetDeadline(time.Now()) // of an open listener
	s.d.ended.Wait()
	if u, ok := s.ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	s.ln.Close()
	return nil
}

func (s *streams) abort() {
	s.mu.Lock()
	live := s.live
	s.live = nil
	s.mu.Unlock()
	for r := range live {
		r.abort()
	}
}
