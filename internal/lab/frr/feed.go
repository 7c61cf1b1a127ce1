package frr

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// FeedAddr is where zebra's module dplane_fpm_nl connects to by default.
const FeedAddr = "127.0.0.1:2620"

// replayQuiet ends a replay. The feed has no mark for it: zebra sends all that it has as fast as it is read, and
// only then what changes. Until then no route is taken for gone, which costs nothing but that a route that
// went away while the feed was cut stays that much longer.
const replayQuiet = time.Second

// A Feed is the listener that a router's zebra connects to, in the router's namespace. zebra comes back by
// itself, every 3 s (FRR 8.4), and says all again.
type Feed struct {
	listener net.Listener
	tell     Tell
	lost     func(error)
	done     chan struct{}

	mu   sync.Mutex
	conn net.Conn // nil while zebra is not there
	shut bool
}

// Listen opens the feed of the namespace at path netns, whose loopback must be up. Lost is called with each
// end of a connection: zebra has ended, or has sent what is no feed. nil to leave it.
func Listen(netns string, tell Tell, lost func(error)) (*Feed, error) {
	f := &Feed{tell: tell, lost: lost, done: make(chan struct{})}
	err := nsenter.DoAt(netns, func() (err error) {
		f.listener, err = net.Listen("tcp", FeedAddr)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("forwarding plane feed in %s: %w", netns, err)
	}
	go f.serve()
	return f, nil
}

// serve takes one connection at a time: the table is one router's, and a router has one zebra.
func (f *Feed) serve() {
	defer close(f.done)
	table := NewTable()
	for {
		c, err := f.listener.Accept()
		if err != nil || !f.hold(c) {
			return
		}
		if err := f.follow(c, table); err != nil && f.lost != nil {
			f.lost(fmt.Errorf("forwarding plane feed: %w", err))
		}
		c.Close()
	}
}

// hold keeps the connection for Close to end. It is false when Close was faster.
func (f *Feed) hold(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		c.Close()
		return false
	}
	f.conn = c
	return true
}

// follow reads a connection to its end: first a replay, then changes.
func (f *Feed) follow(c net.Conn, table *Table) error {
	table.Mark()
	r, buf := bufio.NewReaderSize(c, maxFrame), make([]byte, maxFrame)
	var messages []Message
	var changes []Change
	for replay := true; ; {
		replayed := replay && quiet(c, r)
		if replayed {
			replay = false
			table.Sweep()
		} else {
			frame, err := readFrame(r, buf)
			if err != nil {
				return ended(err)
			}
			if messages, err = Parse(messages[:0], frame); err != nil {
				return err
			}
			for _, m := range messages {
				table.Apply(m)
			}
		}
		if changes = table.Changes(changes[:0]); len(changes) != 0 || replayed {
			f.tell(changes)
		}
	}
}

// quiet waits for the next byte, which stays unread, and is true when none came in time.
func quiet(c net.Conn, r *bufio.Reader) bool {
	c.SetReadDeadline(time.Now().Add(replayQuiet))
	_, err := r.Peek(1)
	c.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// errGone is the ordinary end of a connection: the routes that were told are what there is.
var errGone = errors.New("zebra has gone; its routes stay until it is back")

// ended is nil for an end that is our own.
func ended(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return nil
	case errors.Is(err, io.EOF):
		return errGone
	}
	return err
}

// Close stops listening and ends the connection.
func (f *Feed) Close() error {
	f.mu.Lock()
	f.shut = true
	err := f.listener.Close()
	if f.conn != nil {
		f.conn.Close()
	}
	f.mu.Unlock()
	<-f.done
	return err
}
