package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/examples/resume/record"
)

// A server gives files to clients. One goroutine owns it.
type server struct {
	conn      net.PacketConn
	root      *os.Root
	sessions  *record.Dir
	shedAfter int64 // blocks; 0: never
	fail      func(peer net.Addr) error
	log       func(format string, args ...any)
	transfers map[netip.AddrPort]*transfer
}

func newServer(conn net.PacketConn, root *os.Root, sessions *record.Dir) *server {
	s := &server{conn: conn, root: root, sessions: sessions, transfers: map[netip.AddrPort]*transfer{}}
	var host scaffold.Host
	s.fail = func(peer net.Addr) error { return host.FailPeer(context.Background(), conn.LocalAddr(), peer) }
	return s
}

// run serves until the socket is closed. Between datagrams it does what is sent to it by do.
func (s *server) run(do <-chan func()) error {
	b := make([]byte, 65536)
	for {
		s.conn.SetReadDeadline(s.deadline(time.Now()))
		n, peer, err := s.conn.ReadFrom(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err == nil:
			s.take(time.Now(), peer.(*net.UDPAddr), b[:n])
		case !errors.Is(err, os.ErrDeadlineExceeded):
			s.log("read: %v", err) // of one client that is gone: the others are served
		}
		select {
		case f := <-do:
			f()
		default:
		}
		s.expire(time.Now())
	}
}

// deadline is when something is to be sent again; soon, so that what is sent to do does not wait long.
func (s *server) deadline(now time.Time) time.Time {
	at := now.Add(50 * time.Millisecond)
	for _, t := range s.transfers {
		if t.again.Before(at) {
			at = t.again
		}
	}
	return at
}

// take handles one datagram.
func (s *server) take(now time.Time, from *net.UDPAddr, b []byte) {
	peer := from.AddrPort()
	m, err := parse(b)
	switch {
	case err != nil:
		s.refuse(from, err)
	case m.op == opRead:
		s.begin(now, from, m.request)
	case m.op == opAck:
		s.ack(now, from, m.block)
	case s.transfers[peer] != nil:
		s.log("%v: gave up: %d %s", peer, m.code, m.text)
		s.end(peer)
	}
}

// begin starts a transfer. A request that is repeated gets the same answer again.
func (s *server) begin(now time.Time, from *net.UDPAddr, r request) {
	peer := from.AddrPort()
	if old := s.transfers[peer]; old != nil && old.Request.Name == r.Name && old.Acked == 0 {
		s.conn.WriteTo(old.last, from) //nolint:errcheck // lost, as in any network: it asks again
		return
	}
	s.forget(peer)
	t, err := begin(s.root, key(peer), r)
	if err != nil {
		s.refuse(from, err)
		return
	}
	s.transfers[peer] = t
	s.send(now, from, t, true)
}

// ack goes on. The acknowledgement of a client that is not known here belongs to a transfer of another
// instance.
func (s *server) ack(now time.Time, from *net.UDPAddr, block uint16) {
	peer := from.AddrPort()
	t, known := s.transfers[peer]
	if !known {
		if t = s.adopt(from, block); t == nil {
			return
		}
	}
	switch ok := t.acked(block); {
	case !ok:
	case t.done():
		s.end(peer)
	case t.here && t.Acked == s.shedAfter && s.shedAfter > 0:
		s.shed(now, from, t)
	default:
		s.send(now, from, t, !known || t.Acked%saveEvery == 0)
	}
}

func (s *server) adopt(from *net.UDPAddr, block uint16) *transfer {
	peer := from.AddrPort()
	key, at, ok := s.find(peer, block)
	if !ok {
		s.refuse(from, &refused{errUnknownID, "no such transfer"})
		return nil
	}
	t, err := resume(s.root, key, at)
	if err != nil {
		s.refuse(from, err)
		return nil
	}
	s.log("%v: goes on here with %s after block %d", peer, at.Request.Name, t.extend(block))
	s.transfers[peer] = t
	return t
}

// send gives the client what is next, and writes down how far the transfer is where save says so.
func (s *server) send(now time.Time, to *net.UDPAddr, t *transfer, save bool) {
	b, err := t.next(now)
	if err == nil && save {
		err = s.sessions.Put(t.key, t.place)
	}
	if err == nil {
		_, err = s.conn.WriteTo(b, to)
	}
	if err != nil {
		s.log("%v: %v", to, err)
	}
}

func (s *server) refuse(to *net.UDPAddr, err error) {
	told := &refused{errUndefined, "the server failed"}
	if !errors.As(err, &told) {
		s.log("%v: %v", to, err)
	}
	if !errors.Is(err, errShort) {
		s.conn.WriteTo(appendError(nil, told.code, told.text), to) //nolint:errcheck // lost: it asks again
	}
}

// expire repeats what was not answered, and gives up at last. The record stays: another instance may have
// the client's ear.
func (s *server) expire(now time.Time) {
	for peer, t := range s.transfers {
		switch {
		case now.Before(t.again):
		case t.tries == resendMost:
			s.log("%v: no answer", peer)
			s.forget(peer)
		default:
			t.tries++
			t.again = now.Add(resendAfter)
			s.conn.WriteTo(t.last, net.UDPAddrFromAddrPort(peer)) //nolint:errcheck // lost: it is repeated
		}
	}
}

// end is the end of a transfer, for all instances.
func (s *server) end(peer netip.AddrPort) {
	if err := s.sessions.Drop(s.transfers[peer].key); err != nil {
		s.log("%v: %v", peer, err)
	}
	s.forget(peer)
}

// forget ends what this instance has to do with a transfer.
func (s *server) forget(peer netip.AddrPort) {
	if t := s.transfers[peer]; t != nil {
		t.file.Close()
		delete(s.transfers, peer)
	}
}
