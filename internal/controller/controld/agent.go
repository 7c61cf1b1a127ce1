package controld

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/loop"
	"scaffold.dev/scaffold/internal/controller/controld/session"
)

// agentAPI serves hosts and routers. Its methods run in the handlers' goroutines and only ask or
// post to the loop.
type agentAPI struct{ n *network }

// Host is a host's stream from its Join to its end.
func (a *agentAPI) Host(ctx context.Context, stream *connect.BidiStream[apiv1.HostReport, apiv1.HostOrder]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	join := first.GetJoin()
	if join == nil {
		return connect.NewError(connect.CodeInvalidArgument, errors.New("the first message of a host must be join"))
	}
	s := session.New[apiv1.HostOrder](ctx, a.n.cfg.QueueLength)
	defer s.End(nil)
	var refused *apiv1.Refused
	if err := a.n.ask(ctx, func() { refused = a.n.joinHost(s, join) }); err != nil {
		a.n.loop.Post(func() { a.n.lostHost(join.Name, s, err) }) // it may have been admitted all the same
		return err
	}
	if refused != nil {
		a.n.log.Warn("host refused", "host", join.Name, "reason", refused.Reason)
		return stream.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: refused}})
	}
	err = s.Serve(stream.Send, func() error {
		return session.ReadAll(stream.Receive, func(m *apiv1.HostReport) error {
			return a.n.tell(func() { a.n.hostReport(join.Name, s, m) })
		})
	})
	a.n.loop.Post(func() { a.n.lostHost(join.Name, s, err) })
	return streamError(err)
}

// Router is a router's stream from its RouterJoin to its end.
func (a *agentAPI) Router(ctx context.Context, stream *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	join := first.GetJoin()
	if join == nil {
		return connect.NewError(connect.CodeInvalidArgument, errors.New("the first message of a router must be join"))
	}
	s := session.New[apiv1.RouterOrder](ctx, a.n.cfg.QueueLength)
	defer s.End(nil)
	var refused *apiv1.Refused
	if err := a.n.ask(ctx, func() { refused = a.n.routers.Join(s, join) }); err != nil {
		a.n.loop.Post(func() { a.n.routers.Lost(join.Name, s, err) })
		return err
	}
	if refused != nil {
		a.n.log.Warn("router refused", "router", join.Name, "reason", refused.Reason)
		return stream.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Refused{Refused: refused}})
	}
	err = s.Serve(stream.Send, func() error {
		return session.ReadAll(stream.Receive, func(m *apiv1.RouterReport) error {
			return a.n.tell(func() { a.n.routers.Report(join.Name, s, m) })
		})
	})
	a.n.loop.Post(func() { a.n.routers.Lost(join.Name, s, err) })
	return streamError(err)
}

// ask and tell are the loop's ask and post with the API's errors.
func (n *network) ask(ctx context.Context, f func()) error {
	if err := n.loop.Ask(ctx, f); err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return nil
}

func (n *network) tell(f func()) error {
	if !n.loop.Post(f) {
		return connect.NewError(connect.CodeUnavailable, loop.ErrStopping)
	}
	return nil
}

// streamError gives the peer of a stream that we ended the reason.
func streamError(err error) error {
	switch {
	case errors.Is(err, session.ErrSlow):
		return connect.NewError(connect.CodeResourceExhausted, err)
	case errors.Is(err, session.ErrReplaced):
		return connect.NewError(connect.CodeAborted, err)
	case errors.Is(err, session.ErrRevoked):
		return connect.NewError(connect.CodePermissionDenied, err)
	case errors.Is(err, session.ErrTermOver):
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}
