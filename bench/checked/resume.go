package checked

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"scaffold.dev/scaffold"
	"scaffold.dev/scaffold/bench/agent"
)

// ServeResuming is Serve for streams that go on at another instance: what began each is written down in a
// directory that all instances share, by the connection's stable identifier.
func ServeResuming(ctx context.Context, addr, dir string, gap time.Duration, log *Log) error {
	lc := scaffold.ListenConfig{CanResume: true}
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	log.note(Note{Kind: Listening, At: agent.Now(), Local: l.Addr().String()})
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() { // ends with its connection
			if err := resume(ctx, c.(*net.TCPConn), dir, gap, log); err != nil {
				log.note(Note{Kind: Wrong, At: agent.Now(), Proto: "tcp", Local: c.LocalAddr().String(), Peer: c.RemoteAddr().String(), Err: err.Error()})
			}
		}()
	}
}

// resume serves a stream from its beginning, or from where another instance left it. What it cannot serve
// it resets: it must not look complete.
func resume(ctx context.Context, c *net.TCPConn, dir string, gap time.Duration, log *Log) error {
	fail := func(err error) error {
		c.SetLinger(0) // it is given up
		c.Close()
		return err
	}
	id, err := scaffold.Identify(c)
	if err != nil {
		return fail(err)
	}
	record := filepath.Join(dir, fmt.Sprintf("%v-%d", id.Stable, c.RemoteAddr().(*net.TCPAddr).Port))
	if id.Received == 0 {
		h, first, err := greet(c)
		if err == nil {
			err = os.WriteFile(record, first, 0o600)
		}
		if err != nil {
			return fail(err)
		}
		newEnd(c, log, h, false, gap).run(ctx) //nolint:errcheck // its note says it
		return nil
	}
	first, err := os.ReadFile(record)
	if err != nil {
		return fail(err)
	}
	h, err := ParseHello(first)
	if err == nil && id.Received < helloLen {
		err = errors.New("it was left before it had said what it wants")
	}
	if err != nil {
		return fail(err)
	}
	e := newEnd(c, log, h, false, gap)
	e.received.Store(id.Received - helloLen)
	e.sent.Store(id.Sent)
	e.run(ctx) //nolint:errcheck // its note says it
	return nil
}
