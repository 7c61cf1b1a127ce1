package gateway

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A stream is a connection of TCP or of a Unix socket.
type stream interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// A relay is two connections whose bytes go to each other. It keeps what TCP says: the end of one
// direction is the end of it at the other side, and nothing more; a reset is a reset.
type relay struct {
	client stream
	again  func() (*net.TCPConn, error) // another server; an error when there is none
	moved  [2]func(n int)               // told of bytes: up, down

	mu     sync.Mutex
	server *net.TCPConn
	bound  bool // bytes have gone one way or the other: no other server can go on
}

// run returns when both directions have ended: nil where both ended in peace.
func (r *relay) run() error {
	up := make(chan error, 1)
	go func() { up <- r.upward() }()
	err := r.downward()
	if err != nil {
		r.abort()
	}
	other := <-up
	if err == nil {
		err = other
	}
	r.server.Close()
	r.client.Close()
	return err
}

// upward carries what the client sends.
func (r *relay) upward() error {
	client, err := r.client.SyscallConn()
	if err == nil {
		err = await(client)
	}
	server := r.bind()
	if err == nil {
		err = carry(client, server, r.moved[0])
	}
	if err != nil {
		r.abort()
	}
	return err
}

// downward carries what the server sends. A server that resets before anything was said is replaced.
func (r *relay) downward() error {
	var raw syscall.RawConn
	for {
		var err error
		if raw, err = r.server.SyscallConn(); err != nil {
			return err
		}
		if err = await(raw); err == nil {
			r.bind()
			break
		}
		if !r.replace(err) {
			return err
		}
	}
	return carry(raw, r.client, r.moved[1])
}

// bind is called once bytes have come: from now on it is this server.
func (r *relay) bind() *net.TCPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound = true
	return r.server
}

// replace takes another server for one that failed before it was bound; the client's first bytes wait
// meanwhile.
func (r *relay) replace(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bound || !errors.Is(err, unix.ECONNRESET) {
		return false
	}
	c, err := r.again()
	if err != nil {
		return false
	}
	r.server.Close()
	r.server = c
	return true
}

// abort resets both.
func (r *relay) abort() {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	reset(server)
	reset(r.client)
}

// reset closes a connection so that its peer sees a reset, not an end.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // of one that is closed already
	}
	c.Close()
}

// carry moves bytes until their end, which it passes on.
func carry(from syscall.RawConn, to stream, moved func(int)) error {
	raw, err := to.SyscallConn()
	if err != nil {
		return err
	}
	for {
		p, n, err := fill(from)
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite() // who has gone meanwhile needs no end
			return nil
		}
		if err != nil {
			return err
		}
		if err := flush(p, raw, n); err != nil {
			return err
		}
		moved(n)
	}
}
