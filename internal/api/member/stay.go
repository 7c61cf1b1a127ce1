package member

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"scaffold.dev/scaffold/internal/api"
)

// retryLast is the longest wait between attempts to reach the controller, of members that go on without one.
const retryLast = time.Second

// A Stay is how a member stays in its network that has its own way to each controller.
type Stay struct {
	Credentials *Credentials // nil: in the clear
	Dial        api.DialFunc // nil: from this process's namespace
	Log         *slog.Logger
	Meanwhile   string                // what goes on without a controller, for the log: "forwarding goes on"
	Tries       func(endpoint string) // nil, or is told before each attempt
	Failed      func(error)           // nil, or is told why there is no session
}

// Stay holds sessions with the one of m.Controllers that leads until ctx ends, and says once why there is none. ask makes
// the first report of each.
func (m *Member[R, O, J]) Stay(ctx context.Context, s Stay, ask func(context.Context) (R, error)) {
	patience := Patience{Last: retryLast}
	var said Said
	endpoint, _ := m.Controllers.Next()
	for {
		joined, err := m.attempt(ctx, s, endpoint, ask)
		if ctx.Err() != nil {
			return
		}
		if joined {
			said.Forget()
			m.Controllers.Lost(endpoint)
		} else if s.Credentials != nil {
			s.Credentials.Reload()
		}
		kind, what := "unreachable", "controller unreachable"
		if Outside(err) {
			kind, what = err.Error(), "not in the network"
		}
		if !errors.Is(err, errAgain) && said.New(kind) { // the errors of one absence differ
			s.Log.Warn(what+"; "+s.Meanwhile+", trying again", "controller", endpoint, "error", err)
		}
		if s.Failed != nil {
			s.Failed(err)
		}
		next, tired := m.Controllers.Next()
		if wait := patience.Next(joined, err, !tired); joined || tired { // each is tried once before a pause
			if !Pause(ctx, wait, nil) {
				return
			}
		}
		endpoint = next
	}
}

// attempt is one session with the controller at the endpoint.
func (m *Member[R, O, J]) attempt(ctx context.Context, s Stay, endpoint string, ask func(context.Context) (R, error)) (joined bool, err error) {
	client, err := s.Credentials.Client(endpoint, s.Dial, m.Controllers.Several())
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	if s.Tries != nil {
		s.Tries(endpoint)
	}
	return m.Hold(ctx, endpoint, client, ask)
}
