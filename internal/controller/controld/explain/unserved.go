package explain

import (
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// Unserved are the services of which no instance gets flows, and why; the others are well.
func (n *Network) Unserved() (list []health.Service) {
	var refused map[sid.ServiceID]string
	for _, r := range n.Services.All() {
		instances, taken := n.Plan.Served(r.ID)
		if taken {
			continue
		}
		f := health.Service{Name: r.Name, Instances: instances}
		f.Had, f.Asked = n.Registrations.Missed(r.ID)
		switch {
		case instances > 0:
			f.Reason = n.whyNone(r)
		case refused == nil:
			refused = n.refusals()
			fallthrough
		default:
			f.Refused = refused[r.ID]
		}
		list = append(list, f)
	}
	return list
}

// whyNone is why the first instance of a service gets no flows.
func (n *Network) whyNone(r names.Record) string {
	for _, i := range n.Plan.Instances(r.ID) {
		text := i.Host + " is " + i.State
		if i.Weight == 0 {
			text = i.Host + " has weight 0"
		}
		return events.Because(text, i.Reason) //nolint:staticcheck // of the first, where there is one
	}
	return ""
}

// refusals are why a host may not serve what it would, by service.
func (n *Network) refusals() map[sid.ServiceID]string {
	why := map[sid.ServiceID]string{}
	for _, host := range n.Hosts.Names() {
		for _, x := range n.Hosts.Refused(host) {
			if why[x.Triple.Service] == "" {
				why[x.Triple.Service] = host + " would: " + x.Why
			}
		}
	}
	return why
}
