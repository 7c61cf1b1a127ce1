// Package session is a stream of the controller to a host, a router or a reader of events: what waits to be sent, and
// why it ends.
package session

import (
	"context"
	"errors"
	"io"
	"sync"
)

// A Session is one stream of a host or a router, seen from the loop. Out is the type of its orders.
type Session[Out any] struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	wake chan struct{} // something waits

	mu      sync.Mutex
	waiting []*Out // at most limit; of thousands of sessions nearly all are empty
	limit   int
}

// Why the controller ends a stream. The peer comes back, if it should, and begins with a snapshot.
var (
	ErrSlow     = errors.New("it does not read its orders")
	ErrReplaced = errors.New("a newer stream of the same daemon took its place")
	ErrRevoked  = errors.New("it is no member of the network any more")
	ErrTermOver = errors.New("this controller does not lead any more")
)

// ours reports whether the controller ended a stream, for a reason that the peer is to know.
func ours(cause error) bool {
	return errors.Is(cause, ErrSlow) || errors.Is(cause, ErrReplaced) || errors.Is(cause, ErrTermOver) || errors.Is(cause, ErrRevoked)
}

// New begins one with a queue of that length; its context is of ctx, and says who the peer is.
func New[Out any](ctx context.Context, length int) *Session[Out] {
	ctx, end := context.WithCancelCause(ctx)
	return &Session[Out]{ctx: ctx, end: end, wake: make(chan struct{}, 1), limit: length}
}

// Context is that of the stream: it ends with the session, and says who the peer is.
func (s *Session[Out]) Context() context.Context { return s.ctx }

// End ends the session, nil: as the peer wished.
func (s *Session[Out]) End(cause error) { s.end(cause) }

// Send queues an order; a full queue ends the session. Only the loop calls it.
func (s *Session[Out]) Send(o *Out) bool {
	s.mu.Lock()
	full := len(s.waiting) >= s.limit
	if !full {
		s.waiting = append(s.waiting, o)
	}
	s.mu.Unlock()
	if full {
		s.End(ErrSlow)
		return false
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return true
}

// next is the order that has waited longest; nil where none waits.
func (s *Session[Out]) next() *Out {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.waiting = nil
		return nil
	}
	o := s.waiting[0]
	s.waiting[0], s.waiting = nil, s.waiting[1:]
	return o
}

// Serve writes orders beside read, which returns when the stream ends; it returns when both are
// over, and why. Whatever ends the session ends both.
func (s *Session[Out]) Serve(write func(*Out) error, read func() error) error {
	keep := sync.OnceFunc(HangUpAfter(s.ctx))
	defer keep()
	wrote := make(chan struct{})
	go func() { // ends with the session
		defer close(wrote)
		s.End(s.Write(write))
	}()
	err := read()
	if err == nil {
		keep() // the peer said goodbye: so do we, instead of hanging up
	}
	s.End(err)
	<-wrote
	if cause := context.Cause(s.ctx); ours(cause) {
		return cause
	}
	return err
}

// Write sends orders until the session ends, and returns why it did.
func (s *Session[Out]) Write(send func(*Out) error) error {
	for {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
		for o := s.next(); o != nil && s.ctx.Err() == nil; o = s.next() {
			if err := send(o); err != nil {
				return err
			}
		}
	}
}

// ReadAll gives messages to handle until the peer ends the stream.
func ReadAll[In any](receive func() (*In, error), handle func(*In) error) error {
	for {
		m, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = handle(m)
		}
		if err != nil {
			return err
		}
	}
}
