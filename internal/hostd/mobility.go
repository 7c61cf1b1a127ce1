package hostd

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// mobility is what the uplinks' side of the daemon asks of the flows' side. All of it runs in the loop.
type mobility interface {
	edgeOpened(e *host.Edge)              // also one that was adopted; nothing else comes before it
	trusts(keys *session.Keys)            // nil in an open network
	moved(from, to sid.Locator)           // from is lost or given up; to's uplink is ready to send
	hush(l sid.Locator)                   // l is lost: what very many connections send there waits
	back(l sid.Locator)                   // the link of a locator that the host has came back
	accused(a accusation)                 // the network hears nothing of hosts
	order(o *apiv1.DrainOrder)            // what to do with the flows of a service
	event(e host.Event)                   // all of the edge's but refusals
	orphaned(t sid.Triple, cookie uint64) // the last datagram socket of an instance was closed
	learn(id sid.ServiceID, p *apiv1.Policy)
	bar(id sid.ServiceID, barred func(sid.Locator) bool) // who is at such a locator may not connect any more
	canResume(t sid.Triple) bool                         // a program of this host can go on with flows that began elsewhere
	host(guest uint16, k *kick.Kicker)                   // a guest is up; k was opened in its namespace
	unhost(guest uint16)                                 // it is not any more
	evict(gone func(guest uint16) bool)                  // the flows of such guests end
	counts() map[string]uint64                           // of what was refused, by reason
	holds(l sid.Locator) bool                            // some flow is still known to its peer by an address there
	settle(now time.Time)                                // after each batch of what was posted
	deadline() time.Time                                 // when settle is due by itself; zero: never
}
