package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// A session is the datagrams of one client.
type session struct {
	p      *packets
	who    pair
	conn   *net.UDPConn // towards the service
	raw    syscall.RawConn
	header []byte // of the PROXY protocol, before each datagram
	source []byte // control message: the address that the client is answered from
	idle   time.Duration
	last   atomic.Int64 // when a datagram went either way, nanoseconds since the gateway began
	handed atomic.Bool  // the next gateway has it
}

// connect opens the socket of a new session.
func (p *packets) connect(who pair) (*session, error) {
	l := p.d.want.Load()
	addr, err := p.d.g.names.find(context.Background(), l.Service)
	if err != nil {
		p.d.count.unknown.Add(1)
		return nil, err
	}
	conn, err := net.DialUDP("udp6", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, l.To)))
	if err != nil {
		return nil, err
	}
	return p.sessionOf(who, conn, l)
}

func (p *packets) sessionOf(who pair, conn *net.UDPConn, l *Listen) (s *session, err error) {
	s = &session{p: p, who: who, conn: conn, idle: l.Idle}
	if s.idle == 0 {
		s.idle = p.d.g.cfg.Load().UDPIdle
	}
	if s.raw, err = conn.SyscallConn(); err != nil {
		return nil, err
	}
	if p.v4 {
		s.source = (&ipv4.ControlMessage{Src: who.Local.AsSlice()}).Marshal()
	} else {
		s.source = (&ipv6.ControlMessage{Src: who.Local.AsSlice()}).Marshal()
	}
	if l.Proxy != 0 {
		us := netip.AddrPortFrom(who.Local, l.Port)
		s.header, err = proxyHeader(l.Proxy, net.UDPAddrFromAddrPort(who.Client), net.UDPAddrFromAddrPort(us))
	}
	s.touch()
	return s, err
}

func (s *session) touch() { s.last.Store(int64(time.Since(s.p.d.g.began))) }

// send passes a client's datagram on. Nobody waits for a socket whose buffer is full: it is lost, as in any
// network. A session that has just ended says so.
func (s *session) send(b []byte) (open bool) {
	s.touch()
	err := s.write(b)
	if errors.Is(err, unix.ECONNREFUSED) { // said of an earlier one; this has not been sent
		err = s.write(b)
	}
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	if err != nil {
		s.p.d.count.dropped.Add(1)
		return true
	}
	s.p.d.count.up.Add(uint64(len(b)))
	return true
}

func (s *session) write(b []byte) (err error) {
	parts := [][]byte{b}
	if s.header != nil {
		parts = [][]byte{s.header, b}
	}
	fail := s.raw.Control(func(fd uintptr) {
		_, err = unix.SendmsgBuffers(int(fd), parts, nil, nil, unix.MSG_DONTWAIT)
	})
	if fail != nil {
		return fail
	}
	return err
}

// run passes answers back until both sides have been silent for the idle time.
func (s *session) run() {
	for {
		rest := time.Until(s.p.d.g.began.Add(time.Duration(s.last.Load())).Add(s.idle))
		if rest <= 0 || s.handed.Load() {
			break
		}
		_ = s.conn.SetReadDeadline(time.Now().Add(rest)) // of an open socket
		if s.handed.Load() {                             // its deadline was ours to keep
			break
		}
		if !s.back() {
			return
		}
	}
	s.p.forget(s)
}

// back passes one answer back; it takes a buffer only when there is one. False: the socket is closed.
func (s *session) back() bool {
	var err error
	fail := s.raw.Read(func(fd uintptr) bool {
		buf := datagrams.Get().(*[maxDatagram]byte)
		defer datagrams.Put(buf)
		var n int
		n, _, err = unix.Recvfrom(int(fd), buf[:], unix.MSG_DONTWAIT)
		if err == unix.EAGAIN || err == unix.EINTR {
			return false
		}
		if err == nil {
			s.answer(buf[:n])
		}
		return true
	})
	if fail == nil {
		return true // or an error that ICMP told: the next datagram finds another instance
	}
	t, ok := errors.AsType[net.Error](fail)
	return ok && t.Timeout()
}

func (s *session) answer(b []byte) {
	s.touch()
	_, _, err := s.p.socket.WriteMsgUDPAddrPort(b, s.source, s.who.Client)
	if err != nil {
		s.p.d.count.dropped.Add(1)
		return
	}
	s.p.d.count.down.Add(uint64(len(b)))
}

// forget ends a session. The socket of one that was handed over is closed when the next gateway has it.
func (p *packets) forget(s *session) {
	if s.handed.Load() {
		return
	}
	p.mu.Lock()
	delete(p.sessions, s.who)
	p.mu.Unlock()
	s.conn.Close()
}

// An inheritedSession is one that goes from one gateway to the next.
type inheritedSession struct {
	at   socket
	who  pair
	conn *net.UDPConn
}

// adopt goes on with a session of the gateway before us.
func (p *packets) adopt(h inheritedSession) {
	l := p.d.want.Load()
	s, err := p.sessionOf(h.who, h.conn, l)
	if err != nil {
		h.conn.Close()
		return
	}
	p.d.room.add()
	p.d.g.room.add()
	p.d.g.crowd.add(h.who.Client.Addr())
	p.start(s)
}
