package controld

import (
	"slices"

	"scaffold.dev/scaffold/internal/controller/controld/places"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// newPlaces are those of the network's hosts, and what they need of the other rooms.
func newPlaces(n *network) *places.Places {
	return places.New(places.Config{
		Plan: n.plan, Locators: n.locators, Redirects: n.redirects, Silences: n.silences, Access: n.access,
		Routers: blocks{n}, Hosts: attached{n}, Events: n.events, Saver: n.saver,
		Waits:    n.waits,
		Restored: func() bool { return n.restored != nil }, Full: n.full, Changed: func() { n.changedHands = true },
	})
}

// careful reports whether the stored state may lack what hosts and routers were given: another controller may have
// died before it was saved.
func (n *network) careful() bool { return n.process.store.Elected() || n.restored != nil }

// blocks are the routers, as places need them.
type blocks struct{ n *network }

func (b blocks) Block(name string) (sid.Locator, bool) { return b.n.routers.Block(name) }
func (b blocks) Here(name string) bool                 { return b.n.routers.Here(name) }

// Forgotten reports whether the name was that of a router, and is nobody's now. An open network does not know:
// who joins under the name has it.
func (b blocks) Forgotten(router string) bool {
	if _, member := b.n.members.Member(trust.Router, router); member || b.n.gate == nil {
		return false
	}
	if _, known := b.n.routers.Of(router); known {
		return false
	}
	return slices.ContainsFunc(b.n.gate.Revoked(), func(r store.Revoked) bool { return r.Role == string(trust.Router) && r.Name == router })
}

// attached are the hosts, as places need them.
type attached struct{ n *network }

func (a attached) Connected(host string) bool { return a.n.hosts[host].session != nil }
func (a attached) Lease(host string)          { a.n.lease(a.n.hosts[host]) }
func (a attached) Back(host string)           { a.n.informHost(a.n.hosts[host]) }

func (a attached) Gone(host string, locators ...uint64) {
	a.n.tellGone(a.n.hosts[host], nil, locators...)
}

func (a attached) Certificate(host string, key []byte, l sid.Locator) []byte {
	return a.n.certificates.For(host, key, l)
}
