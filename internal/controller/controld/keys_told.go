package controld

import (
	"maps"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/routers"
	"scaffold.dev/scaffold/internal/core/plan"
)

// tellAtOnce is how many sessions are certified anew before the loop does something else.
const tellAtOnce = 64

// tellKeys tells all sessions the network's keys, with certificates by the one of now; a few at a time.
func (n *network) tellKeys() {
	edition := n.members.Edition()
	var all []func()
	n.routers.Each(func(_ routers.Router, s *routers.Session) {
		all = append(all, func() {
			if c := n.members.Renewed(gate.PeerOf(s.Context())); c != nil {
				s.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Credential{Credential: c}})
			}
		})
	})
	n.boost.Each(func(s *boost.Session) {
		all = append(all, func() {
			if c := n.members.Renewed(gate.PeerOf(s.Context())); c != nil {
				s.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Credential{Credential: c}})
			}
		})
	})
	for _, name := range slices.Sorted(maps.Keys(n.hosts)) {
		if h := n.hosts[name]; h.session != nil {
			s := h.session
			all = append(all, func() {
				if h.session == s {
					n.informHost(h)
				}
			})
		}
	}
	n.inTurn(all, func() bool { return n.members.Edition() == edition })
}

// inTurn does all of it, for as long as it is to be done, and lets the loop do other things between.
func (n *network) inTurn(all []func(), still func() bool) {
	if !still() {
		return
	}
	now := all[:min(tellAtOnce, len(all))]
	for _, f := range now {
		f()
	}
	if rest := all[len(now):]; len(rest) > 0 {
		n.loop.After(0, func() { n.inTurn(rest, still) })
	}
}

// informHost tells a host that has not heard of the keys of now. What is sent to one that is gone may reach it never, or in
// an hour, while its stream stands: it is told once it answers again, and has not heard of them until then.
func (n *network) informHost(h *host) {
	if h.session != nil && h.heard != n.members.Edition() && n.places.State(&h.Host) != plan.HostGone {
		n.tellHostKeys(h)
	}
}

// tellHostKeys tells a host first whose certificates count, then what it has of those.
func (n *network) tellHostKeys(h *host) {
	s := h.session
	s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_NetworkKeys{NetworkKeys: &apiv1.NetworkKeys{Keys: n.members.PublicKeys()}}})
	n.certificates.Renew(h.Name)
	if c := n.members.Renewed(gate.PeerOf(s.Context())); c != nil {
		s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Credential{Credential: c}})
	}
	h.heard = n.members.Edition()
}
