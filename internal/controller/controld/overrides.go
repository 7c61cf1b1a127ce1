package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/overrides"
	"scaffold.dev/scaffold/internal/controller/controld/pushes"
	"scaffold.dev/scaffold/sid"
)

// newOverrides are what operators say of single hosts, and what that needs of the other rooms.
func newOverrides(n *network) *overrides.Overrides {
	return overrides.New(overrides.Config{Plan: n.plan, Services: n.names, Hosts: drained{n}, Routers: n.pushes, Loop: n.loop, Patience: pushes.Patience})
}

// drained are the hosts, which are told of drains.
type drained struct{ n *network }

func (d drained) Connected(host string) bool {
	h := d.n.hosts[host]
	return h != nil && h.session != nil
}

// Serves reports whether a host's session knows a service.
func (d drained) Serves(host string, id sid.ServiceID) bool {
	return d.Connected(host) && d.n.registrations.Knows(host, id)
}

func (d drained) Told(host string, id sid.ServiceID) string { return d.n.hosts[host].ordered[id] }

// Tell sends a host what to do with its flows of a service.
func (d drained) Tell(host string, id sid.ServiceID, mode string) {
	h := d.n.hosts[host]
	h.ordered[id] = mode
	h.session.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Drain{Drain: &apiv1.DrainOrder{Ss: id.SS, Suffix: uint64(id.Suffix), Mode: mode}}})
}
