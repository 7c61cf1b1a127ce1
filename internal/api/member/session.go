package member

import (
	"context"
	"errors"
	"sync/atomic"
)

// errAgain says that a session ended because its owner wants another one.
var errAgain = errors.New("the session was ended to begin another one")

// outLimit is how many reports may wait for the controller.
const outLimit = 4096

// A Session is one stream to the controller that has joined. The owner's loop sends; a goroutine writes.
type Session[R any] struct {
	out      chan R
	cancel   context.CancelFunc
	ended    chan struct{}
	finished bool        // the owner's loop's
	again    atomic.Bool // the owner ended it
}

func newSession[R any](cancel context.CancelFunc) *Session[R] {
	return &Session[R]{out: make(chan R, outLimit), cancel: cancel, ended: make(chan struct{})}
}

// Send never blocks. False means that the session is over: a controller that does not read loses it, and the next one
// begins with a snapshot.
func (s *Session[R]) Send(r R) bool {
	if s.finished {
		return false
	}
	select {
	case s.out <- r:
		return true
	default:
		s.cancel()
		return false
	}
}

// End hangs up; the next attempt follows.
func (s *Session[R]) End() {
	s.again.Store(true)
	s.cancel()
}

// Finish ends the sending half behind what was sent: the controller, once it has read that, ends the stream.
func (s *Session[R]) Finish() {
	if !s.finished {
		s.finished = true
		close(s.out)
	}
}

// Ended is closed when the stream has ended.
func (s *Session[R]) Ended() <-chan struct{} { return s.ended }

// write sends what waits until ctx ends.
func (s *Session[R]) write(ctx context.Context, stream Sender[R]) {
	for {
		select {
		case r, ok := <-s.out:
			if !ok {
				stream.CloseRequest() //nolint:errcheck // the session ends, with it or without
				<-ctx.Done()
				return
			}
			if stream.Send(r) != nil {
				return // who receives learns why
			}
		case <-ctx.Done():
			stream.CloseRequest() //nolint:errcheck // as above
			return
		}
	}
}
