package controld

import (
	"context"
	"net/netip"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// newBoost are the network's agents of boost, and what they need of the other rooms.
func newBoost(n *network) *boost.Boost {
	return boost.New(boost.Config{
		Trust: n.cfg.Trust, Patience: boost.Patience, Members: n.members, Events: n.events, Saver: n.saver,
		Loop: n.loop, Orders: n.orders, Accept: n.acceptAgent, Network: named{n.plan, n},
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
	return converse(ctx, a.n, stream, (*apiv1.BoostReport).GetJoin, daemon[apiv1.BoostReport, apiv1.BoostOrder, *apiv1.BoostJoin]{
		kind: "agent", join: a.n.boost.Join, report: a.n.boost.Report, lost: a.n.boost.Lost,
		refuse: func(no *apiv1.Refused) *apiv1.BoostOrder {
			return &apiv1.BoostOrder{Order: &apiv1.BoostOrder_Refused{Refused: no}}
		},
	})
}

// steerStream serves who drives the switches.
type steerStream struct{ n *network }

// Steer is the stream of who drives the switches from its SteerJoin to its end.
func (a steerStream) Steer(ctx context.Context, stream *connect.BidiStream[apiv1.SteerReport, apiv1.SteerOrder]) error {
	return converse(ctx, a.n, stream, (*apiv1.SteerReport).GetJoin, daemon[apiv1.SteerReport, apiv1.SteerOrder, *apiv1.SteerJoin]{
		kind: "driver of switches", join: a.n.boost.JoinSwitches, report: a.n.boost.ReportSwitches, lost: a.n.boost.LostSwitches,
		refuse: func(no *apiv1.Refused) *apiv1.SteerOrder {
			return &apiv1.SteerOrder{Order: &apiv1.SteerOrder_Refused{Refused: no}}
		},
	})
}

// named are names and hosts as agents of boost need them.
type named struct {
	*plan.Plan
	n *network
}

// HostAt takes a daemon that is away for one that says it, if it did: it goes on with what it knows.
func (x named) HostAt(a netip.Addr) string {
	if !x.n.cfg.Space.AS.Contains(a) {
		return ""
	}
	at, is := x.Host(sid.LocatorOf(a))
	if h := x.n.hosts[at.Name]; !is || h == nil || !h.carriers {
		return ""
	}
	return at.Name
}

func (x named) Address(id sid.ServiceID) (string, netip.Addr) {
	r, _ := x.n.names.ByID(id)
	return r.Name, x.n.cfg.Space.ServiceAddr(id)
}

func (x named) Clients() netip.Prefix { return x.n.cfg.Space.AS }
