package controld

import (
	"fmt"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// hostReport works on one message of a host's stream.
func (n *network) hostReport(name string, s *hostSession, m *apiv1.HostReport) {
	h, ok := n.hosts[name]
	if !ok || h.session != s || !h.Here {
		return // of a stream that was replaced meanwhile
	}
	switch m := m.Report.(type) {
	case *apiv1.HostReport_Snapshot:
		n.replaceAll(h, m.Snapshot.GetEntries())
	case *apiv1.HostReport_Delta:
		for _, r := range m.Delta.GetEntries() {
			n.change(h, r)
		}
	case *apiv1.HostReport_Load:
		n.loaded(h, m.Load)
	case *apiv1.HostReport_Event:
		n.reported(h, m.Event)
	case *apiv1.HostReport_Attach:
		n.attach(h, m.Attach)
	case *apiv1.HostReport_Detach:
		n.detach(h, m.Detach)
	case *apiv1.HostReport_Prefer:
		n.prefer(h, sid.Locator(m.Prefer.GetLocator()))
	case *apiv1.HostReport_Leave:
		n.leave(h, m.Leave.GetReason(), false)
		s.end(nil)
	}
}

// replaceAll takes a full set: what it does not name is withdrawn first.
func (n *network) replaceAll(h *host, entries []*apiv1.Registration) {
	keep := make(map[sid.Triple]struct{}, len(entries))
	for _, r := range entries {
		if t, err := triple(r); err == nil && !r.Gone {
			keep[t] = struct{}{}
		}
	}
	for t := range h.wanted {
		if _, ok := keep[t]; !ok {
			n.withdraw(h, t)
		}
	}
	for _, r := range entries {
		n.change(h, r)
	}
	h.reported = true
}

func triple(r *apiv1.Registration) (sid.Triple, error) {
	t := sid.Triple{Service: sid.ServiceID{SS: r.Ss, Suffix: sid.Suffix(r.Suffix)}, Proto: sid.Proto(r.Proto), Port: uint16(r.Port)}
	if !t.Service.Valid() || r.Proto == 0 || r.Proto > 255 || r.Port == 0 || r.Port > 65535 {
		return t, fmt.Errorf("serviceID %v, protocol %d, port %d: not an instance", t.Service, r.Proto, r.Port)
	}
	return t, nil
}

func (n *network) change(h *host, r *apiv1.Registration) {
	t, err := triple(r)
	switch {
	case err != nil:
		n.refuse(h, r, err.Error())
	case r.Gone:
		n.withdraw(h, t)
	default:
		n.register(h, t, r)
	}
}

func (n *network) withdraw(h *host, t sid.Triple) {
	w, ok := h.wanted[t]
	if !ok {
		return
	}
	delete(h.wanted, t)
	n.plan.Withdraw(h.Name, t)
	if _, ok := n.names.ByID(t.Service); ok && w.up {
		n.touchGuards(t.Service)
		n.instanceEvent("instance.down", h, t, "instance is down: its host unregistered it")
	}
}

func (n *network) refuse(h *host, r *apiv1.Registration, reason string) {
	h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_RegistrationRefused{
		RegistrationRefused: &apiv1.RegistrationRefused{Registration: r, Reason: reason},
	}})
}

func (n *network) instanceEvent(kind string, h *host, t sid.Triple, text string) {
	name := t.Service.String()
	if r, ok := n.names.ByID(t.Service); ok {
		name = r.Name
	}
	where := fmt.Sprintf("%s %v/%d", h.Name, t.Proto, t.Port)
	n.event(kind, name, where+": "+text, "host", h.Name, "proto", t.Proto.String(), "port", uitoa(t.Port), "locator", h.Locator.String())
}

// tellPolicy lets the host know the policy of a service that it registered, once per version.
func (n *network) tellPolicy(h *host, id sid.ServiceID) {
	r, ok := n.names.ByID(id)
	if told, knows := h.told[id]; h.session == nil || !ok || knows && told == n.edition(r) {
		return
	}
	h.told[id] = n.edition(r)
	n.news[h] = append(n.news[h], n.servicePolicy(r, false))
}

func (n *network) servicePolicy(r names.Record, gone bool) *apiv1.ServicePolicy {
	return &apiv1.ServicePolicy{
		Name: r.Name, Ss: r.ID.SS, Suffix: uint64(r.ID.Suffix), Policy: apiPolicy(r.Policy), Gone: gone, Guard: n.apiGuard(r.ID),
	}
}

// tellNews sends each host what changed for it in one message: a host may serve thousands.
func (n *network) tellNews() {
	for h, entries := range n.news {
		if h.session != nil {
			h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Services{Services: &apiv1.ServicePolicies{Entries: entries}}})
		}
	}
	clear(n.news)
}

func apiPolicy(p names.Policy) *apiv1.Policy {
	return &apiv1.Policy{
		Failover: p.Failover, Drain: p.Drain, Ready: p.Ready, Weight: p.Weight, Datagrams: p.Datagrams, Dscp: p.DSCP, PatienceMs: p.Patience,
	}
}

func policyFrom(p *apiv1.Policy) names.Policy {
	return names.Policy{
		Failover: p.GetFailover(), Drain: p.GetDrain(), Ready: strings.TrimSpace(p.GetReady()),
		Weight: p.GetWeight(), Datagrams: p.GetDatagrams(), DSCP: p.GetDscp(), Patience: p.GetPatienceMs(),
	}
}
