package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// How long between attempts to reach the controller.
const (
	retryFirst = 25 * time.Millisecond
	retryLast  = time.Second
)

// ErrRefused says that the controller does not want this router.
var ErrRefused = errors.New("the controller refused this router")

// A Router keeps a stream to the controller in a router's name. Its functions are called by way of Call, in
// the loop of the one who owns the router's state.
type Router struct {
	Controller string                                                               // endpoint
	Dial       func(ctx context.Context, network, address string) (net.Conn, error) // nil: from this process's namespace
	Log        *slog.Logger
	Call       func(func()) bool // runs a function in the loop and waits for it; false after the loop's end
	Join       func() *apiv1.RouterJoin
	Joined     func(*Session, *apiv1.RouterJoined) error // an error ends the session
	Order      func(*apiv1.RouterOrder)
	Parted     func(*Session)
	Health     func(error) // why there is no session; called from any goroutine
}

type stream = *connect.BidiStreamForClient[apiv1.RouterReport, apiv1.RouterOrder]

// Converse keeps a session with the controller until ctx ends, and says once why there is none.
func (r *Router) Converse(ctx context.Context) {
	wait, said := retryFirst, ""
	for ctx.Err() == nil {
		joined, err := r.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if joined {
			wait, said = retryFirst, ""
		}
		kind, what := "unreachable", "controller unreachable; forwarding goes on, trying again"
		if errors.Is(err, ErrRefused) {
			kind, what = err.Error(), "not in the network; forwarding goes on, trying again"
		}
		if kind != said { // the errors of one absence differ
			said = kind
			r.Log.Warn(what, "controller", r.Controller, "error", err)
		}
		r.Health(err)
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
		}
		wait = min(2*wait, retryLast)
	}
}

// client connects on the first call.
func (r *Router) client() (*http.Client, error) {
	if r.Dial == nil {
		client, _, err := api.Dial(r.Controller)
		return client, err
	}
	to, err := api.ParseEndpoint(r.Controller)
	if err != nil {
		return nil, err
	}
	return api.DialWith(to, r.Dial), nil
}

// attempt is one session: join, then orders until it ends.
func (r *Router) attempt(parent context.Context) (joined bool, err error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	client, err := r.client()
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	stream := apiv1connect.NewAgentClient(client, api.BaseURL()).Router(ctx)
	defer stream.CloseResponse()
	var join *apiv1.RouterJoin
	if !r.Call(func() { join = r.Join() }) {
		return false, context.Canceled
	}
	if err := stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: join}}); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, err := stream.Receive()
	if err != nil {
		return false, err
	}
	if no := first.GetRefused(); no != nil {
		return false, fmt.Errorf("%w: %s", ErrRefused, no.Reason)
	}
	if first.GetJoined() == nil {
		return false, errors.New("the controller's first order is not Joined: another version?")
	}
	return true, r.obey(ctx, cancel, stream, first.GetJoined())
}

// obey runs a session that has joined.
func (r *Router) obey(ctx context.Context, cancel context.CancelFunc, stream stream, j *apiv1.RouterJoined) error {
	s := &Session{out: make(chan *apiv1.RouterReport, outLimit), cancel: cancel}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		s.write(ctx, stream)
	}()
	defer func() {
		cancel()
		<-written
		r.Call(func() { r.Parted(s) })
	}()
	var err error
	if !r.Call(func() { err = r.Joined(s, j) }) || err != nil {
		return err
	}
	for {
		order, err := stream.Receive()
		if err != nil {
			return fmt.Errorf("the stream ended: %w", err)
		}
		if no := order.GetRefused(); no != nil {
			return fmt.Errorf("the controller ended the session: %s", no.Reason)
		}
		if !r.Call(func() { r.Order(order) }) {
			return context.Canceled
		}
	}
}
