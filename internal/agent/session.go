package agent

import (
	"context"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// outLimit is how many reports may wait for the controller.
const outLimit = 4096

// A Session is one stream to the controller that has joined. The owner's loop sends; a goroutine writes.
type Session struct {
	out    chan *apiv1.RouterReport
	cancel context.CancelFunc
}

// Send never blocks: a controller that does not read loses the session and gets a snapshot of its own.
func (s *Session) Send(r *apiv1.RouterReport) {
	select {
	case s.out <- r:
	default:
		s.cancel()
	}
}

// End hangs up; the next attempt follows.
func (s *Session) End() { s.cancel() }

func (s *Session) write(ctx context.Context, stream stream) {
	for {
		select {
		case r := <-s.out:
			if stream.Send(r) != nil {
				return
			}
		case <-ctx.Done():
			stream.CloseRequest()
			return
		}
	}
}
