package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// silenced are the hosts, which are told of those that do not answer.
type silenced struct{ n *network }

func (s silenced) Here(host string) bool {
	h := s.n.hosts[host]
	return h != nil && h.Here
}

// Serves is what a host registered, by service.
func (s silenced) Serves(host string) map[sid.ServiceID][]sid.Triple {
	return s.n.registrations.ByService(host)
}

// Gone tells all others of a host that does not answer.
func (s silenced) Gone(host string, services []*apiv1.ServiceRef) {
	if h := s.n.hosts[host]; h != nil {
		s.n.tellGone(h, services, h.Locators()...)
	}
}
