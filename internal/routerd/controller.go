package routerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// How long between attempts to reach the controller, and how many reports may wait for it.
const (
	retryFirst = 25 * time.Millisecond
	retryLast  = time.Second
	outLimit   = 4096
)

// A session is one stream to the controller that has joined. The loop sends; a goroutine writes.
type session struct {
	out    chan *apiv1.RouterReport
	cancel context.CancelFunc
}

// send never blocks: a controller that does not read loses the session and gets a snapshot of its own.
func (s *session) send(r *apiv1.RouterReport) {
	select {
	case s.out <- r:
	default:
		s.cancel()
	}
}

var errRefused = errors.New("the controller refused this router")

type routerStream = *connect.BidiStreamForClient[apiv1.RouterReport, apiv1.RouterOrder]

// converse keeps a session with the controller until ctx ends, and says once why there is none.
func (d *daemon) converse() {
	wait, said := retryFirst, ""
	for d.ctx.Err() == nil {
		joined, err := d.attempt()
		if d.ctx.Err() != nil {
			return
		}
		if joined {
			wait, said = retryFirst, ""
		}
		kind, what := "unreachable", "controller unreachable; forwarding goes on, trying again"
		if errors.Is(err, errRefused) {
			kind, what = err.Error(), "not in the network; forwarding goes on, trying again"
		}
		if kind != said { // the errors of one absence differ
			said = kind
			d.log.Warn(what, "controller", d.cfg.Controller, "error", err)
		}
		d.health.Set("controller", err)
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-d.ctx.Done():
		}
		wait = min(2*wait, retryLast)
	}
}

// attempt is one session: join, then orders until it ends.
func (d *daemon) attempt() (joined bool, err error) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	client, base, err := api.Dial(d.cfg.Controller)
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	stream := apiv1connect.NewAgentClient(client, base).Router(ctx)
	defer stream.CloseResponse()
	var join *apiv1.RouterJoin
	if !d.call(func() { join = d.join() }) {
		return false, ctx.Err()
	}
	if err := stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: join}}); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, err := stream.Receive()
	if err != nil {
		return false, err
	}
	if r := first.GetRefused(); r != nil {
		return false, fmt.Errorf("%w: %s", errRefused, r.Reason)
	}
	if first.GetJoined() == nil {
		return false, errors.New("the controller's first order is not Joined: another version?")
	}
	return true, d.obey(ctx, cancel, stream, first.GetJoined())
}

// obey runs a session that has joined.
func (d *daemon) obey(ctx context.Context, cancel context.CancelFunc, stream routerStream, j *apiv1.RouterJoined) error {
	s := &session{out: make(chan *apiv1.RouterReport, outLimit), cancel: cancel}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		s.write(ctx, stream)
	}()
	defer func() {
		cancel()
		<-written
		d.call(func() { d.parted(s) })
	}()
	var err error
	if !d.call(func() { err = d.joined(s, j) }) || err != nil {
		return err
	}
	for {
		order, err := stream.Receive()
		if err != nil {
			return fmt.Errorf("the stream ended: %w", err)
		}
		if r := order.GetRefused(); r != nil {
			return fmt.Errorf("the controller ended the session: %s", r.Reason)
		}
		if !d.call(func() { d.order(order) }) {
			return ctx.Err()
		}
	}
}

func (s *session) write(ctx context.Context, stream routerStream) {
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
