package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/routers"
)

// newRouters are those of the network, and what they need of the other rooms.
func newRouters(n *network) *routers.Routers {
	return routers.New(routers.Config{
		Network: n.cfg.Network, Space: n.cfg.Space, Lease: n.cfg.Lease, Plan: n.plan, Links: n.links, Pushes: n.pushes, Tunnels: n.tunnels,
		Places: n.places, Members: n.members, Events: n.events, Saver: n.saver, Loop: n.loop, Dropped: n.metrics.dropped,
		Waits: n.waits, Full: n.full, Accept: n.acceptRouter,
	})
}

// waits reports whether it is not known yet what hosts and routers of before have.
func (n *network) waits() bool { return n.grace.Settling() && n.careful() }

// acceptRouter is what each router is told that joins.
func (n *network) acceptRouter() *apiv1.RouterJoined {
	return &apiv1.RouterJoined{
		Network: n.cfg.Network, Space: n.space(), ProbeIntervalMs: uint32(n.cfg.ProbeInterval.Milliseconds()),
		SuspectAfter: n.cfg.SuspectAfter, GoneAfterMs: uint32(n.cfg.GoneAfter.Milliseconds()),
		Controllers: n.controllers.All(), NetworkId: n.id, Epoch: n.epoch, Trust: n.cfg.Trust,
	}
}
