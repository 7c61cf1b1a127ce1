package emud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/lab/emud/v1/emudv1connect"
)

// A Client speaks to an engine.
type Client struct {
	socket string
	calls  emudv1connect.EmulatorClient
}

// Dial returns a client of the engine that listens on a Unix socket; nothing is asked yet. Each call has a connection of
// its own: who has done with a client need not close it.
func Dial(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	plain := connect.WithAcceptCompression("gzip", nil, nil) // nothing leaves the machine, and the engine has better to do
	return &Client{socket, emudv1connect.NewEmulatorClient(&http.Client{Transport: transport}, "http://engine", plain)}
}

// ErrGone is returned where no engine answers.
var ErrGone = errors.New("the engine does not answer")

// ErrVersion is returned where something answers that does not know the question.
var ErrVersion = errors.New("the engine is of another version of scaffold: take the lab down and bring it up again, with an engine that is built with this one")

// NotFoundError says that the engine has nothing of that name.
type NotFoundError struct{ Text string }

func (e *NotFoundError) Error() string { return e.Text }

// askTime bounds one question and its answer, streams aside.
const askTime = 10 * time.Second

// ask asks a question that takes no longer than askTime.
func ask[Q, A any](ctx context.Context, c *Client, call func(context.Context, *Q) (*A, error), q *Q) (*A, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a, err := call(ctx, q)
	if err != nil {
		return nil, c.fault(err)
	}
	return a, nil
}

// fault says whose fault it is that a question has no answer: of the question, or of an engine that is not there.
func (c *Client) fault(err error) error {
	var said *connect.Error
	switch {
	case !errors.As(err, &said):
		return fmt.Errorf("%w on %s: %w", ErrGone, c.socket, err)
	case said.Code() == connect.CodeUnimplemented:
		return fmt.Errorf("%w (%s)", ErrVersion, c.socket)
	case !connect.IsWireError(err) || api.TimedOut(err) || said.Code() == connect.CodeUnavailable:
		return fmt.Errorf("%w on %s: %w", ErrGone, c.socket, said.Unwrap())
	case said.Code() == connect.CodeNotFound:
		return &NotFoundError{said.Message()}
	}
	return errors.New(said.Message())
}
