// Package silences decides when other hosts are told that a host does not answer: where others serve what it serves, and
// after as much patience as each service's policy has. The loop owns what it knows.
package silences

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// No router can tell a host that is cut off for good from one that is back in three seconds, here or elsewhere:
// both answer no probe. What is done about the flows to it is a matter of each service, docs/protocol.md §5.3:
// where others serve it, and after as much patience as its policy has. Where nobody else does, its flows wait.

// A Plan knows who takes new flows.
type Plan interface {
	Takers(t sid.Triple, host string) (itself, others bool)
}

// Services are those that there are.
type Services interface {
	ByID(id sid.ServiceID) (names.Record, bool)
}

// Hosts serve, and are told of each other.
type Hosts interface {
	Here(host string) bool
	Serves(host string) map[sid.ServiceID][]sid.Triple
	Gone(host string, services []*apiv1.ServiceRef) // tells all others that its flows of these have lost their peer
}

// A Loop runs what is to be done later in the goroutine that owns the silences.
type Loop interface {
	After(time.Duration, func())
}

// A silence is from the last answer of a host's last place to the first of any.
type silence struct {
	since  time.Time
	warned map[sid.ServiceID]bool // services of which the other hosts were told
}

// Silences are those of a network's hosts, by name.
type Silences struct {
	plan     Plan
	services Services
	hosts    Hosts
	loop     Loop
	all      map[string]*silence
}

// New knows of none.
func New(p Plan, s Services, h Hosts, l Loop) *Silences {
	return &Silences{plan: p, services: s, hosts: h, loop: l, all: make(map[string]*silence)}
}

// Since is when a host fell silent; ok is false of one that answers somewhere.
func (x *Silences) Since(host string) (t time.Time, ok bool) {
	if s := x.all[host]; s != nil {
		return s.since, true
	}
	return t, false
}

// End is for a host that answers, or that is not here any more.
func (x *Silences) End(host string) { delete(x.all, host) }

// Begin is told that no place of a host answers any more, or that a router has given it up by now: then all
// are told once more, for it may have answered them then. Who else is silent is known once the router's whole report
// was read: Look comes after it.
func (x *Silences) Begin(host string) {
	s, again := x.all[host], true
	if s == nil {
		s, again = &silence{since: time.Now()}, false
		x.all[host] = s
	}
	s.warned = make(map[sid.ServiceID]bool)
	if again {
		return
	}
	for _, p := range x.patiences(host) {
		x.loop.After(p, func() {
			if x.all[host] == s {
				x.warn(host, s)
			}
		})
	}
}

// patiences are the different ones of what the host serves, but none at all.
func (x *Silences) patiences(host string) (list []time.Duration) {
	seen := map[time.Duration]bool{0: true}
	for id := range x.hosts.Serves(host) {
		if r, ok := x.services.ByID(id); ok && !seen[r.Policy.Waits()] {
			seen[r.Policy.Waits()] = true
			list = append(list, r.Policy.Waits())
		}
	}
	return list
}

// warn tells the other hosts of the services of a silent host that others serve and that need not wait longer.
func (x *Silences) warn(host string, s *silence) {
	var services []*apiv1.ServiceRef
	for id, triples := range x.hosts.Serves(host) {
		r, exists := x.services.ByID(id)
		if !exists || s.warned[id] || time.Since(s.since) < r.Policy.Waits() || !x.replaceable(host, triples) {
			continue
		}
		s.warned[id] = true
		services = append(services, &apiv1.ServiceRef{Ss: id.SS, Suffix: uint64(id.Suffix)})
	}
	if len(services) > 0 {
		x.hosts.Gone(host, services)
	}
}

// replaceable reports whether others serve all that the host serves of a service, and no new flow is sent to it.
func (x *Silences) replaceable(host string, triples []sid.Triple) bool {
	for _, t := range triples {
		if itself, others := x.plan.Takers(t, host); itself || !others {
			return false
		}
	}
	return true
}

// Look looks again at the hosts that do not answer: an instance appeared, or a host fell silent or came back.
func (x *Silences) Look() {
	for host, s := range x.all {
		if x.hosts.Here(host) {
			x.warn(host, s)
		}
	}
}
