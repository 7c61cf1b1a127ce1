package breaks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The streams: as much every millisecond as a busy but not greedy program sends.
const (
	chunk = 2048
	every = time.Millisecond
	warm  = 150 * time.Millisecond
	limit = 30 * time.Second // a stall this long is an error
)

// A Stall is how long after the link was back the first new byte arrived, by who sent.
type Stall struct{ MoverSends, OtherSends time.Duration }

// Stall cuts the mover's link for a while, under one stream in each direction.
func (n *Network) Stall(ctx context.Context, gone time.Duration, kick bool) (s Stall, err error) {
	pairs, err := n.Connect(2)
	if err != nil {
		return s, err
	}
	out, back := startStream(pairs[0].Mover, pairs[0].Other), startStream(pairs[1].Other, pairs[1].Mover)
	defer func() { err = errors.Join(err, out.stop(), back.stop()) }()
	if err := pause(ctx, warm); err != nil {
		return s, err
	}
	if err := n.Cut(); err != nil {
		return s, err
	}
	if err := pause(ctx, gone); err != nil {
		return s, err
	}
	out.arm()
	back.arm()
	if err := n.Heal(); err != nil {
		return s, err
	}
	healed := time.Now()
	if kick {
		if err := n.Kick(); err != nil {
			return s, err
		}
	}
	if s.MoverSends, err = out.since(ctx, healed); err != nil {
		return s, fmt.Errorf("the moving host sends, cut for %v: %w", gone, err)
	}
	if s.OtherSends, err = back.since(ctx, healed); err != nil {
		return s, fmt.Errorf("the other host sends, cut for %v: %w", gone, err)
	}
	return s, nil
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A stream sends over a connection and notes when bytes arrive.
type stream struct {
	from, to *net.TCPConn
	armed    atomic.Bool
	first    chan time.Time // of the first byte after arm
	ends     sync.WaitGroup
	err      error // of the reader, valid after ends
}

func startStream(from, to *net.TCPConn) *stream {
	s := &stream{from: from, to: to, first: make(chan time.Time, 1)}
	s.ends.Add(2)
	go s.send()
	go s.receive()
	return s
}

// send ends when stop closes the connection.
func (s *stream) send() {
	defer s.ends.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	b := make([]byte, chunk)
	for at := byte(0); ; <-tick.C {
		for i := range b {
			b[i], at = at, at+1
		}
		if _, err := s.from.Write(b); err != nil {
			return
		}
	}
}

// receive checks every byte, and ends when stop closes the connection.
func (s *stream) receive() {
	defer s.ends.Done()
	b := make([]byte, 1<<16)
	for want := byte(0); ; {
		n, err := s.to.Read(b)
		if n > 0 && s.armed.CompareAndSwap(true, false) {
			s.first <- time.Now()
		}
		for _, got := range b[:n] {
			if got != want {
				s.err = fmt.Errorf("a byte is %d where %d was sent", got, want)
				return
			}
			want++
		}
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.err = err
			}
			return
		}
	}
}

func (s *stream) arm() { s.armed.Store(true) }

func (s *stream) since(ctx context.Context, healed time.Time) (time.Duration, error) {
	select {
	case t := <-s.first:
		return max(0, t.Sub(healed)), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(limit):
		return 0, fmt.Errorf("nothing arrived in %v", limit)
	}
}

func (s *stream) stop() error {
	s.to.SetLinger(0) // it may have failed
	s.from.SetLinger(0)
	s.to.Close()
	s.from.Close()
	s.ends.Wait()
	return s.err
}
