package scaffold

import (
	"context"
	"errors"
	"net"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/backoff"
)

// How soon a daemon that went away is looked for again.
const (
	againFirst = 20 * time.Millisecond
	againMost  = time.Second
)

// An announcement tells the host daemon, for as long as it runs, how a socket serves. It runs beside the
// socket, which serves with or without it.
type announcement struct {
	d    *daemon
	req  *apiv1.ServeRequest
	tell func(Notice)
	stop context.CancelFunc
}

// announce returns once the daemon knows, so that no flow comes that it would not hand on. It returns nil
// where there is nothing to say.
func (lc *ListenConfig) announce(ctx context.Context, at net.Addr) (*announcement, error) {
	if !lc.CanResume && lc.Notify == nil {
		return nil, nil
	}
	service, port, err := served(at)
	if err != nil {
		return nil, err
	}
	d, err := lc.host().dial()
	if err != nil {
		return nil, err
	}
	a := &announcement{d: d, tell: lc.tell,
		req: &apiv1.ServeRequest{Service: service, Proto: proto(at), Port: port, CanResume: lc.CanResume}}
	return a, a.begin(ctx)
}

func (lc *ListenConfig) tell(n Notice) {
	if lc.Notify != nil {
		lc.Notify(n)
	}
}

// begin opens the call, bounded by the caller's context until the first notice.
func (a *announcement) begin(ctx context.Context) error {
	running, stop := context.WithCancel(context.Background())
	a.stop = stop
	unbound := context.AfterFunc(ctx, stop)
	stream, first, err := a.open(running)
	if err == nil && !unbound() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		a.d.Close()
		return errors.Join(ctx.Err(), a.d.explain("serving programs", err))
	}
	go a.run(running, stream, first) // ends in end
	return nil
}

type notices = connect.ServerStreamForClient[apiv1.ServeNotice]

// open says how the socket serves and waits for the first answer.
func (a *announcement) open(ctx context.Context) (*notices, Notice, error) {
	stream, err := a.d.local.Serve(ctx, connect.NewRequest(a.req))
	if err != nil {
		return nil, "", err
	}
	if !stream.Receive() {
		stream.Close()
		return nil, "", closed(stream.Err())
	}
	return stream, Notice(stream.Msg().Kind), nil
}

// closed is the error of a stream that ended, also of one that ended without.
func closed(err error) error {
	if err == nil {
		return connect.NewError(connect.CodeUnavailable, errors.New("the host daemon ended the call"))
	}
	return err
}

// run hands notices on and opens the call again whenever the daemon went away.
func (a *announcement) run(ctx context.Context, stream *notices, first Notice) {
	defer a.d.Close()
	for stream != nil {
		a.hand(ctx, first)
		for stream.Receive() {
			a.hand(ctx, Notice(stream.Msg().Kind))
		}
		stream.Close()
		a.hand(ctx, Lost)
		stream, first = a.reopen(ctx)
	}
}

// hand leaves a program alone that has called Close.
func (a *announcement) hand(ctx context.Context, n Notice) {
	if ctx.Err() == nil {
		a.tell(n)
	}
}

// reopen tries until the daemon answers; it returns nil when the socket was closed meanwhile.
func (a *announcement) reopen(ctx context.Context) (*notices, Notice) {
	for again := (backoff.Backoff{First: againFirst, Last: againMost}); ; {
		select {
		case <-ctx.Done():
			return nil, ""
		case <-time.After(again.Next()):
		}
		if stream, first, err := a.open(ctx); err == nil {
			return stream, first
		}
	}
}

// end ends the call; a nil announcement has none. It does not wait for the program's callback, from
// which it may be called.
func (a *announcement) end() {
	if a != nil {
		a.stop()
	}
}
