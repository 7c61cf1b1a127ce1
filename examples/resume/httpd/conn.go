package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/examples/resume/record"
)

// keep is how many answers of one connection are remembered. More than one is needed only where a client
// asks on before it has read: then the place where it stands may lie in an earlier answer.
const keep = 16

// A server answers requests for the files below root.
type server struct {
	root     *os.Root
	sessions *record.Dir
	identify func(net.Conn) (scaffold.Identity, error)
	log      func(format string, args ...any)
}

// A conn is one client's connection, wherever it began.
type conn struct {
	*server
	net.Conn
	key     string
	in      *bufio.Reader
	read    *counter
	answers []*answer // the last ones, oldest first
}

// counter counts what was read of the client's, over all instances.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.n += int64(n)
	return n, err
}

// errLost: what the connection's earlier instance knew is not in the record.
var errLost = errors.New("it began elsewhere and the record does not say how")

// serve answers until the client has enough. A connection that cannot be served to its end is reset:
// half an answer must not look whole. Its record stays, for it may have gone on elsewhere.
func (s *server) serve(nc net.Conn) {
	defer nc.Close()
	c := &conn{server: s, Conn: nc, read: &counter{from: nc}}
	c.in = bufio.NewReader(c.read)
	err := c.run()
	if err == nil {
		err = s.sessions.Drop(c.key)
	} else if tcp, ok := nc.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	if err != nil {
		s.log("%v: %v", nc.RemoteAddr(), err)
	}
}

func (c *conn) run() error {
	id, err := c.identify(c.Conn)
	switch {
	case errors.Is(err, scaffold.ErrNoFlow):
		id.Stable = c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	case err != nil:
		return err
	}
	c.key = fmt.Sprintf("%v/%d", id.Stable, c.RemoteAddr().(*net.TCPAddr).Port)
	if id.Resumed {
		if more, err := c.resume(id); err != nil || !more {
			return err
		}
	}
	for {
		more, err := c.next()
		if err != nil || !more {
			return err
		}
	}
}

// next answers one request; it reports false after the last one.
func (c *conn) next() (bool, error) {
	req, err := http.ReadRequest(c.in)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a := reply(c.root, req, time.Now())
	a.Read = c.read.n - int64(c.in.Buffered())
	if n := len(c.answers); n > 0 {
		a.Base = c.answers[n-1].end()
	}
	c.answers = append(c.answers, a)
	c.answers = c.answers[max(0, len(c.answers)-keep):]
	if err := c.sessions.Put(c.key, c.answers); err != nil {
		return false, err
	}
	return !a.Last, a.send(c, c.root, a.Base)
}

// resume goes on at the byte where the client stands. It reports false where the connection is to end.
func (c *conn) resume(id scaffold.Identity) (bool, error) {
	if id.Sent == 0 && id.Received == 0 {
		return true, nil // its request has not been read by anybody
	}
	if ok, err := c.sessions.Get(c.key, &c.answers); err != nil || !ok || len(c.answers) == 0 {
		return false, errors.Join(errLost, err)
	}
	last := c.answers[len(c.answers)-1]
	if at := int64(id.Sent); at < c.answers[0].Base || at > last.end() {
		return false, fmt.Errorf("%w: the client has %d bytes, it knows of %d to %d", errLost, at, c.answers[0].Base, last.end())
	}
	if err := c.sessions.Put(c.key, c.answers); err != nil { // ours now
		return false, err
	}
	c.log("%v: goes on here at byte %d, %d of its own were taken", c.RemoteAddr(), id.Sent, id.Received)
	if err := c.sendFrom(int64(id.Sent)); err != nil {
		return false, err
	}
	return !last.Last && c.align(int64(id.Received), last.Read) == nil, nil
}

func (c *conn) sendFrom(at int64) error {
	for _, a := range c.answers {
		if at < a.end() {
			if err := a.send(c, c.root, max(at, a.Base)); err != nil {
				return err
			}
		}
	}
	return nil
}

// align makes the next byte that is read the first of the next request. What was answered already may come
// again: then it is skipped. A request that the earlier instance had taken and not recorded is lost: the
// connection ends between two answers, which clients of persistent connections know how to take.
func (c *conn) align(taken, answered int64) error {
	c.read.n = taken
	if taken > answered {
		return errLost
	}
	_, err := c.in.Discard(int(answered - taken))
	return err
}
