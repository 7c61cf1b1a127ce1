package registrations

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// A host is told the policy of a service and who may connect when it registers it, and again when either changes.

// tell lets the host know a service that it registered, once per version.
func (x *Registrations) tell(h *host, id sid.ServiceID) {
	r, ok := x.Services.ByID(id)
	if told, knows := h.told[id]; !x.Hosts.Connected(h.name) || !ok || knows && told == x.Access.Edition(r) {
		return
	}
	h.told[id] = x.Access.Edition(r)
	x.news[h.name] = append(x.news[h.name], x.policy(r, false))
}

func (x *Registrations) policy(r names.Record, gone bool) *apiv1.ServicePolicy {
	return &apiv1.ServicePolicy{
		Name: r.Name, Ss: r.ID.SS, Suffix: uint64(r.ID.Suffix), Policy: specs.PolicyOf(r.Policy), Gone: gone, Access: x.Access.Of(r.ID),
	}
}

// Knows reports whether a host's session knows a service: the host registered it.
func (x *Registrations) Knows(host string, id sid.ServiceID) bool {
	h := x.hosts[host]
	if h == nil {
		return false
	}
	_, told := h.told[id]
	return told
}

// Changed tells the hosts that know a service what they do not know of it yet: who may connect, for instance.
func (x *Registrations) Changed(id sid.ServiceID) {
	for _, h := range x.hosts {
		if _, told := h.told[id]; told && x.Hosts.Here(h.name) {
			x.tell(h, id)
		}
	}
}

// Replaced tells the hosts that know a service of another version of its record: with it comes a drain whose mode is the
// policy's.
func (x *Registrations) Replaced(id sid.ServiceID) {
	x.Changed(id)
	for _, h := range x.hosts {
		if _, told := h.told[id]; told {
			x.Drains.Tell(h.name, id)
		}
	}
}

// Removed tells the hosts that know a service that it is no more. What they would serve of it they do when it is made again.
func (x *Registrations) Removed(r names.Record) {
	delete(x.had, r.ID)
	delete(x.asked, r.ID)
	for _, h := range x.hosts {
		for t, w := range h.wanted {
			if t.Service == r.ID {
				w.Up, w.told = false, false
				x.put(h, t, w)
			}
		}
		if _, told := h.told[r.ID]; told && x.Hosts.Connected(h.name) {
			delete(h.told, r.ID)
			x.news[h.name] = append(x.news[h.name], x.policy(r, true))
		}
	}
}

// Flush sends each host what changed for it in one message: a host may serve thousands. What they serve is stored.
func (x *Registrations) Flush() {
	for host, entries := range x.news {
		if x.Hosts.Connected(host) {
			x.Hosts.Order(host, &apiv1.HostOrder{Order: &apiv1.HostOrder_Services{Services: &apiv1.ServicePolicies{Entries: entries}}})
		}
	}
	clear(x.news)
	x.keep(time.Now())
}
