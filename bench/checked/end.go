package checked

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// ReportEvery is how often an end tells how far it is.
const ReportEvery = 100 * time.Millisecond

// An end is one end of a stream.
type end struct {
	conn     *net.TCPConn
	log      *Log
	about    Note // what all its notes have
	in, out  Pattern
	rate     Rate
	step     time.Duration
	gap      time.Duration // shortest that is noted
	received atomic.Uint64
	sent     atomic.Uint64
	last     atomic.Int64
	done     chan struct{} // everything was received
}

func newEnd(conn *net.TCPConn, log *Log, h Hello, client bool, gap time.Duration) *end {
	e := &end{conn: conn, log: log, step: h.Step, gap: gap, done: make(chan struct{})}
	e.about = Note{Flow: h.Flow, Proto: "tcp", Client: client, Local: conn.LocalAddr().String(), Peer: conn.RemoteAddr().String()}
	e.in, e.out, e.rate = Up(h.Seed), Down(h.Seed), h.Down
	if client {
		e.in, e.out, e.rate = e.out, e.in, h.Up
	}
	return e
}

func (e *end) note(kind string, change func(*Note)) {
	n := e.about
	n.Kind, n.At = kind, agent.Now()
	n.Received, n.Sent, n.Last = e.received.Load(), e.sent.Load(), e.last.Load()
	if change != nil {
		change(&n)
	}
	e.log.note(n)
}

// Truncated is what no program may see: an answer that looks complete and is not.
const Truncated = "the stream ended as if it were complete before it was"

var errTruncated = errors.New(Truncated)

// run sends and receives until the client's stop has ended and both ends had sent all that they wanted, or
// until the connection breaks.
func (e *end) run(stop context.Context) error {
	e.note(Began, nil)
	sending, enough := context.WithCancel(stop)
	defer enough()
	var work sync.WaitGroup
	var sendErr error
	work.Go(e.report)
	work.Go(func() { sendErr = e.send(sending) })
	err := e.receive()
	broken := err != nil
	if broken {
		e.conn.SetLinger(0) // it is broken
		e.conn.Close()      // it is broken
	}
	early := !broken && e.about.Client && stop.Err() == nil
	enough() // of a server: the client has sent all
	close(e.done)
	work.Wait()
	e.conn.Close() // it was read to its end
	switch {
	case early && errors.Is(sendErr, syscall.ECONNRESET):
		err = sendErr // the kernel tells a reset once: to the sender, this time
	case early:
		err = errTruncated
	case !broken:
		err = sendErr
	}
	e.note(Ended, func(n *Note) {
		if err != nil {
			n.Err = err.Error()
		}
	})
	return err
}

// report tells of progress until the end.
func (e *end) report() {
	tick := time.NewTicker(ReportEvery)
	defer tick.Stop()
	for told := int64(0); ; {
		select {
		case <-e.done:
			return
		case <-tick.C:
		}
		if last := e.last.Load(); last != told {
			told = last
			e.note(Progress, nil)
		}
	}
}

// receive reads to the end of the stream, and says so where a byte is wrong.
func (e *end) receive() error {
	buf := make([]byte, 128<<10)
	last := agent.Now()
	for {
		n, err := e.conn.Read(buf)
		now := agent.Now()
		if n > 0 {
			at := e.received.Load()
			if i := e.in.Check(buf[:n], at); i >= 0 {
				return e.wrong(buf[:n], at, i)
			}
			e.received.Add(uint64(n))
			e.last.Store(now)
			if now-last >= int64(e.gap) {
				e.note(Gap, func(n *Note) { n.At, n.From = now, last })
			}
			last = now
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (e *end) wrong(b []byte, at uint64, i int) error {
	want := make([]byte, min(16, len(b)-i))
	e.in.Fill(want, at+uint64(i))
	err := fmt.Errorf("byte %d: %x arrived where %x was sent", at+uint64(i), b[i:i+len(want)], want)
	e.note(Wrong, func(n *Note) { n.Err = err.Error() })
	return err
}
