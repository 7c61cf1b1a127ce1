package registry

import (
	"maps"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
)

// Policy takes the policy of a service that this host registered.
func (r *Registry) Policy(p *apiv1.ServicePolicy) {
	id := sid.ServiceID{SS: p.Ss, Suffix: sid.Suffix(p.Suffix)}
	r.dirty = true
	maps.DeleteFunc(r.before, func(t sid.Triple, _ bool) bool { return t.Service == id })
	if p.Gone {
		delete(r.policies, id)
		return
	}
	if p.Policy == nil {
		p.Policy = &apiv1.Policy{}
	}
	r.policies[id] = p
	r.setAccess(id, p)
	r.cfg.Flows.Learn(id, p.Policy)
	if err := r.edge.SetService(id, edgePolicy(p.Policy)); err != nil {
		r.cfg.Log.Error("policy of a service", "service", p.Name, "error", err)
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

// Learn takes the policy of a service that a program of this host asked for by name: how its datagrams
// and packets are treated is for the client's edge to know, too.
func (r *Registry) Learn(addr netip.Addr, p *apiv1.Policy) {
	if r.edge == nil {
		return
	}
	id, ok := r.edge.Space().ServiceOf(addr)
	if ok {
		r.cfg.Flows.Learn(id, p)
	}
	if !ok || r.policies[id] != nil { // of those the controller tells each change
		return
	}
	if err := r.edge.SetService(id, edgePolicy(p)); err != nil {
		r.cfg.Log.Warn("policy of a service", "service", addr, "error", err)
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

// Refuse notes that the controller does not take a registration: no router resolves to it.
func (r *Registry) Refuse(o *apiv1.RegistrationRefused) {
	g := o.Registration
	if g == nil {
		return
	}
	t := sid.Triple{Service: sid.ServiceID{SS: g.Ss, Suffix: sid.Suffix(g.Suffix)}, Proto: sid.Proto(g.Proto), Port: uint16(g.Port)}
	i := r.instances[t]
	if i == nil {
		return
	}
	r.cfg.Log.Warn("the controller refuses to let this host serve", "service", r.Name(t.Service), "proto", t.Proto, "port", t.Port, "reason", o.Reason)
	i.refused = o.Reason
	if i.refused == "" {
		i.refused = "refused by the controller"
	}
	r.changes++
	r.fit(t, i)
	r.told[t] = r.verdict(t, i) // it knows
	if err := r.edge.Withdraw(t); err != nil {
		r.cfg.Log.Error("cannot withdraw", "triple", t, "error", err)
	}
}
