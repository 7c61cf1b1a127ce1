package controld

import (
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/members"
)

// reachedAt are the addresses at which the network's controllers are reached, as tokens carry them: what was advertised,
// else where this one listens. One that listens on all addresses is reached at each that its machine has now.
func (n *network) reachedAt() (all []string) {
	endpoints := n.cfg.Advertise
	if len(endpoints) == 0 {
		endpoints = n.cfg.Listen
	}
	for _, c := range n.controllers.Running() {
		endpoints = append(slices.Clip(endpoints), c.API...)
	}
	length := 0
	for _, address := range config.Reached(endpoints) {
		ap, err := netip.ParseAddrPort(address)
		if err == nil && (ap.Addr().IsLoopback() || n.inside(ap.Addr())) || slices.Contains(all, address) {
			continue // another machine means itself by it, or it is a host of the network's, which comes and goes
		}
		if length += 1 + len(address); length > members.MostAddresses {
			break
		}
		all = append(all, address)
	}
	return all
}

// inside reports whether an address is one that the network gives.
func (n *network) inside(a netip.Addr) bool {
	space := n.cfg.Space
	return space.AS.Contains(a) || space.Services.Contains(a) || space.Identities.Contains(a)
}
