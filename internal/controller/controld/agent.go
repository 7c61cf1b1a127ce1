package controld

import (
	"context"
	"errors"
	"fmt"

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
	return converse(ctx, a.n, stream, (*apiv1.HostReport).GetJoin, daemon[apiv1.HostReport, apiv1.HostOrder, *apiv1.Join]{
		kind: "host", join: a.n.joinHost, report: a.n.hostReport, lost: a.n.lostHost,
		refuse: func(no *apiv1.Refused) *apiv1.HostOrder {
			return &apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: no}}
		},
	})
}

// Router is a router's stream from its RouterJoin to its end.
func (a *agentAPI) Router(ctx context.Context, stream *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	return converse(ctx, a.n, stream, (*apiv1.RouterReport).GetJoin, daemon[apiv1.RouterReport, apiv1.RouterOrder, *apiv1.RouterJoin]{
		kind: "router", join: a.n.routers.Join, report: a.n.routers.Report, lost: a.n.routers.Lost,
		refuse: func(no *apiv1.Refused) *apiv1.RouterOrder {
			return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Refused{Refused: no}}
		},
	})
}

// A daemon is what is done, in the loop, with the streams of one kind of daemons: In are their reports, Out their orders,
// and J is the first word of a stream.
type daemon[In, Out, J any] struct {
	kind   string
	join   func(*session.Session[Out], J) *apiv1.Refused
	refuse func(*apiv1.Refused) *Out
	report func(name string, s *session.Session[Out], m *In)
	lost   func(name string, s *session.Session[Out], err error)
}

// converse is a daemon's stream from its first word to its end.
func converse[In, Out any, J interface {
	comparable
	GetName() string
}](ctx context.Context, n *network, stream *connect.BidiStream[In, Out], joinOf func(*In) J, d daemon[In, Out, J]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	var none J
	join := joinOf(first)
	if join == none {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the first message of the %s must be join", d.kind))
	}
	name := join.GetName()
	s := session.New[Out](ctx, n.cfg.QueueLength)
	defer s.End(nil)
	var refused *apiv1.Refused
	if err := n.ask(ctx, func() { refused = d.join(s, join) }); err != nil {
		n.loop.Post(func() { d.lost(name, s, err) }) // it may have been admitted all the same
		return err
	}
	if refused != nil {
		n.log.Warn(d.kind+" refused", d.kind, name, "reason", refused.Reason)
		return stream.Send(d.refuse(refused))
	}
	err = s.Serve(stream.Send, func() error {
		return session.ReadAll(stream.Receive, func(m *In) error {
			return n.tell(func() { d.report(name, s, m) })
		})
	})
	n.loop.Post(func() { d.lost(name, s, err) })
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
