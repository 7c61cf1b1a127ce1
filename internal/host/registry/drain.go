package registry

import "scaffold.dev/scaffold/sid"

// Drain takes instances out of service or back. It says of each of their services how its policy has it drained.
func (r *Registry) Drain(want func(sid.ServiceID) bool, drain bool) map[sid.ServiceID]string {
	all := map[sid.ServiceID]string{}
	for t, i := range r.instances {
		if !want(t.Service) {
			continue
		}
		i.drained = drain
		r.fit(t, i)
		r.dirty = true
		all[t.Service] = ""
		if p := r.policies[t.Service]; p != nil {
			all[t.Service] = p.Policy.GetDrain()
		}
	}
	return all
}
