package api

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// firstByte is how long a client may take until it has said whether it speaks TLS.
const firstByte = 5 * time.Second

// recordHandshake is the first byte of every TLS connection (RFC 8446 §5.1), and of no HTTP request.
const recordHandshake = 22

// Secure makes of a listener one whose clients speak TLS. Those that do not are served in the clear all the
// same, for an answer that says so: a handler tells them by Request.TLS.
func Secure(l net.Listener, config *tls.Config) net.Listener {
	s := &secureListener{Listener: l, config: config, told: make(chan accepted), closed: make(chan struct{})}
	go s.accept() // ends with the listener
	return s
}

type accepted struct {
	conn net.Conn
	err  error
}

// A secureListener looks at the first byte of each connection beside the others: one that is silent holds up
// nobody.
type secureListener struct {
	net.Listener
	config *tls.Config
	told   chan accepted
	closed chan struct{}
	once   sync.Once
}

func (s *secureListener) accept() {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			s.tell(accepted{err: err})
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		go s.look(conn) // ends with the first byte, or firstByte
	}
}

func (s *secureListener) tell(a accepted) {
	select {
	case s.told <- a:
	case <-s.closed:
		if a.conn != nil {
			a.conn.Close()
		}
	}
}

func (s *secureListener) look(conn net.Conn) {
	var first [1]byte
	conn.SetReadDeadline(time.Now().Add(firstByte))
	if n, _ := conn.Read(first[:]); n == 0 {
		conn.Close()
		return
	}
	conn.SetReadDeadline(time.Time{})
	conn = &begun{Conn: conn, first: first[:]}
	if first[0] == recordHandshake {
		conn = tls.Server(conn, s.config)
	}
	s.tell(accepted{conn: conn})
}

func (s *secureListener) Accept() (net.Conn, error) {
	select {
	case a := <-s.told:
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *secureListener) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Listener.Close()
}

// begun is a connection whose first byte was read already.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 && len(p) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}
