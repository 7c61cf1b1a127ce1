package hostd

import (
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// order does what the controller says.
func (d *daemon) order(o *apiv1.HostOrder) {
	switch o := o.Order.(type) {
	case *apiv1.HostOrder_Services:
		for _, p := range o.Services.Entries {
			d.serving.policy(p)
		}
	case *apiv1.HostOrder_RegistrationRefused:
		d.serving.refuse(o.RegistrationRefused)
	case *apiv1.HostOrder_Gone:
		d.sessions.accused(accusationOf(o.Gone))
	case *apiv1.HostOrder_Drain:
		d.sessions.order(o.Drain)
	case *apiv1.HostOrder_Attached:
		d.attached(o.Attached)
	case *apiv1.HostOrder_Credential:
		d.renewed(o.Credential)
	case *apiv1.HostOrder_Revoked:
		d.revoked(o.Revoked.List, false)
	case *apiv1.HostOrder_NetworkKeys:
		d.networkKeys(o.NetworkKeys.Keys)
	}
}

func accusationOf(g *apiv1.LocatorsGone) (a accusation) {
	for _, l := range g.Locators {
		a.locators = append(a.locators, sid.Locator(l))
	}
	for _, s := range g.Services {
		a.services = append(a.services, sid.ServiceID{SS: s.Ss, Suffix: sid.Suffix(s.Suffix)})
	}
	return a
}

// policy takes the policy of a service that this host registered.
func (r *registry) policy(p *apiv1.ServicePolicy) {
	id := sid.ServiceID{SS: p.Ss, Suffix: sid.Suffix(p.Suffix)}
	r.dirty = true
	if p.Gone {
		delete(r.policies, id)
		return
	}
	if p.Policy == nil {
		p.Policy = &apiv1.Policy{}
	}
	r.policies[id] = p
	r.guard(id, p)
	r.d.sessions.learn(id, p.Policy)
	if err := r.d.edge.SetService(id, edgePolicy(p.Policy)); err != nil {
		r.d.log.Error("policy of a service", "service", p.Name, "error", err)
	}
	for t, i := range r.instances {
		if t.Service == id {
			r.changes++
			i.refused = "" // as long as there was no such service, or it might not
			r.admit(t, i)
			r.share(t)
		}
	}
}

// learn takes the policy of a service that a program of this host asked for by name: how its datagrams
// and packets are treated is for the client's edge to know, too.
func (r *registry) learn(addr netip.Addr, p *apiv1.Policy) {
	if r.d.edge == nil || r.d.home == nil {
		return
	}
	id, ok := r.d.home.Space.ServiceOf(addr)
	if ok {
		r.d.sessions.learn(id, p)
	}
	if !ok || r.policies[id] != nil { // of those the controller tells each change
		return
	}
	if err := r.d.edge.SetService(id, edgePolicy(p)); err != nil {
		r.d.log.Warn("policy of a service", "service", addr, "error", err)
	}
}

func edgePolicy(p *apiv1.Policy) host.Policy {
	e := host.Policy{DSCP: uint8(min(p.Dscp, 63)), Continue: p.Failover == "continue"}
	switch p.Datagrams {
	case "unbound":
		e.Datagrams = host.Unbound
	case "unset":
		e.Datagrams = host.Unset
	}
	return e
}

// refuse notes that the controller does not take a registration: no router resolves to it.
func (r *registry) refuse(o *apiv1.RegistrationRefused) {
	g := o.Registration
	if g == nil {
		return
	}
	t := sid.Triple{Service: sid.ServiceID{SS: g.Ss, Suffix: sid.Suffix(g.Suffix)}, Proto: sid.Proto(g.Proto), Port: uint16(g.Port)}
	i := r.instances[t]
	if i == nil {
		return
	}
	r.d.log.Warn("the controller refuses to let this host serve", "service", r.name(t.Service), "proto", t.Proto, "port", t.Port, "reason", o.Reason)
	i.refused = o.Reason
	if i.refused == "" {
		i.refused = "refused by the controller"
	}
	r.changes++
	r.told[t] = r.verdict(t, i) // it knows
	if err := r.d.edge.Withdraw(t); err != nil {
		r.d.log.Error("cannot withdraw", "triple", t, "error", err)
	}
}
