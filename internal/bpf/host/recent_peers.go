package host

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

// mostRecentPeers is RECENT_PEERS of abi.h.
const mostRecentPeers = 8

// remembered is for how long a host is asked that no flow leads to any more: who tells a port (rpcbind) may be asked by a
// connection that ends before the port is used. Where a flow is, it tells where its peer is now; later nobody would.
const remembered = time.Minute

// RecentPeers are the hosts that the client of a refused flow has flows with for the same service, or had a moment ago:
// whom it met last comes first. One of them may have told it the port. Before them comes this host, where it serves the port
// itself.
func (e *Edge) RecentPeers(ev Event) []sid.Locator {
	type met struct {
		at      uint64
		locator sid.Locator
	}
	var all []met
	for nth := range uint16(mostRecentPeers) {
		var a edgeRecentPeer
		key := edgeRecentPeerKey{Service: ev.Peer.Addr().As16(), Guest: ev.Tuple.Guest, Nth: nth}
		if e.maps.RecentPeers.Lookup(&key, &a) != nil {
			continue
		}
		m := met{a.At, sid.Locator(binary.BigEndian.Uint64(a.Locator[:]))}
		var out edgeEgressFlow
		switch {
		case e.maps.EgressFlows.Lookup(&a.Flow, &out) == nil && State(out.State) == BoundFlow:
			m.locator = sid.Locator(binary.BigEndian.Uint64(out.Peer[:8]))
		case ktime.Now()-a.At > uint64(remembered):
			continue
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b met) int { return cmp.Compare(b.at, a.at) })
	var list []sid.Locator
	if own := e.servedHere(ev); own != 0 {
		list = append(list, own)
	}
	for _, m := range all {
		if !slices.Contains(list, m.locator) {
			list = append(list, m.locator)
		}
	}
	return list
}

// servedHere is the locator that a refused flow leaves with, where the service is served here, if perhaps by other ports;
// else 0. A listener that the daemon has not got to yet is enough: the edge then says *later*. The question goes to the router
// and back, as all between programs of one host does.
func (e *Edge) servedHere(ev Event) sid.Locator {
	low := ev.Peer.Addr().As16()
	key := ev.Tuple.key()
	var s edgeService
	var out edgeEgressFlow
	if e.maps.Services.Lookup([8]byte(low[8:]), &s) != nil || s.Live == 0 || e.maps.EgressFlows.Lookup(&key, &out) != nil {
		return 0
	}
	slots, err := e.slots()
	if err != nil || int(out.Slot) >= len(slots) || slots[out.Slot].Ifindex == 0 {
		return 0
	}
	return slots[out.Slot].locator()
}

// connecting reports whether nobody has answered the refused flow yet.
func (e *Edge) connecting(ev Event) bool {
	key := ev.Tuple.key()
	var out edgeEgressFlow
	return e.maps.EgressFlows.Lookup(&key, &out) == nil && State(out.State) == Connecting
}
