package controld

import (
	"context"
	"errors"
	"io"
	"sync"
)

// A session is one stream of a host or a router, seen from the loop. Out is the type of its orders.
type session[Out any] struct {
	peer peer // whose it is
	ctx  context.Context
	end  context.CancelCauseFunc
	wake chan struct{} // something waits

	mu      sync.Mutex
	waiting []*Out // at most limit; of thousands of sessions nearly all are empty
	limit   int
}

// Why the controller ends a stream. The peer comes back, if it should, and begins with a snapshot.
var (
	errSlow     = errors.New("it does not read its orders")
	errReplaced = errors.New("a newer stream of the same daemon took its place")
	errRevoked  = errors.New("it is no member of the network any more")
)

// ours reports whether the controller ended a stream, for a reason that the peer is to know.
func ours(cause error) bool {
	return errors.Is(cause, errSlow) || errors.Is(cause, errReplaced) || errors.Is(cause, errTermOver) || errors.Is(cause, errRevoked)
}

func newSession[Out any](ctx context.Context, length int) *session[Out] {
	ctx, end := context.WithCancelCause(ctx)
	return &session[Out]{peer: peerOf(ctx), ctx: ctx, end: end, wake: make(chan struct{}, 1), limit: length}
}

// send queues an order; a full queue ends the session. Only the loop calls it.
func (s *session[Out]) send(o *Out) bool {
	s.mu.Lock()
	full := len(s.waiting) >= s.limit
	if !full {
		s.waiting = append(s.waiting, o)
	}
	s.mu.Unlock()
	if full {
		s.end(errSlow)
		return false
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return true
}

// next is the order that has waited longest; nil where none waits.
func (s *session[Out]) next() *Out {
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

// serve writes orders beside read, which returns when the stream ends; it returns when both are
// over, and why. Whatever ends the session ends both.
func (s *session[Out]) serve(write func(*Out) error, read func() error) error {
	keep := sync.OnceFunc(hangUpAfter(s.ctx))
	defer keep()
	wrote := make(chan struct{})
	go func() { // ends with the session
		defer close(wrote)
		s.end(s.write(write))
	}()
	err := read()
	if err == nil {
		keep() // the peer said goodbye: so do we, instead of hanging up
	}
	s.end(err)
	<-wrote
	if cause := context.Cause(s.ctx); ours(cause) {
		return cause
	}
	return err
}

func (s *session[Out]) write(send func(*Out) error) error {
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

// readAll gives messages to handle until the peer ends the stream.
func readAll[In any](receive func() (*In, error), handle func(*In) error) error {
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
