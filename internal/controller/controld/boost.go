package controld

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/controller/controld/session"
)

// newBoost are the network's agents of boost, and what they need of the other rooms.
func newBoost(n *network) *boost.Boost {
	return boost.New(boost.Config{
		Trust: n.cfg.Trust, Patience: boost.Patience, Members: n.members, Events: n.events, Saver: n.saver,
		Loop: n.loop, Orders: n.orders, Accept: n.acceptAgent,
	})
}

// acceptAgent is what each agent is told that joins.
func (n *network) acceptAgent() *apiv1.BoostJoined {
	return &apiv1.BoostJoined{Network: n.cfg.Network, NetworkId: n.id, Epoch: n.epoch, Trust: n.cfg.Trust, Controllers: n.controllers.All()}
}

// boostStream serves agents of boost.
type boostStream struct{ n *network }

// Agent is the stream of an agent of boost from its BoostJoin to its end.
func (a boostStream) Agent(ctx context.Context, stream *connect.BidiStream[apiv1.BoostReport, apiv1.BoostOrder]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	join := first.GetJoin()
	if join == nil {
		return connect.NewError(connect.CodeInvalidArgument, errors.New("the first message of an agent must be join"))
	}
	s := session.New[apiv1.BoostOrder](ctx, a.n.cfg.QueueLength)
	defer s.End(nil)
	var refused *apiv1.Refused
	if err := a.n.ask(ctx, func() { refused = a.n.boost.Join(s, join) }); err != nil {
		a.n.loop.Post(func() { a.n.boost.Lost(join.Name, s, err) })
		return err
	}
	if refused != nil {
		a.n.log.Warn("agent refused", "agent", join.Name, "reason", refused.Reason)
		return stream.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Refused{Refused: refused}})
	}
	err = s.Serve(stream.Send, func() error {
		return session.ReadAll(stream.Receive, func(m *apiv1.BoostReport) error {
			return a.n.tell(func() { a.n.boost.Report(join.Name, s, m) })
		})
	})
	a.n.loop.Post(func() { a.n.boost.Lost(join.Name, s, err) })
	return streamError(err)
}
