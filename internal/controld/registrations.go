package controld

import (
	"fmt"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
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

func (n *network) register(h *host, t sid.Triple, r *apiv1.Registration) {
	before, again := h.wanted[t]
	if !again && len(h.wanted) >= maxRegistrations {
		n.refuse(h, r, fmt.Sprintf("a host serves at most %d instances", maxRegistrations))
		return
	}
	w := wish{ready: plan.Readiness{Ready: r.Ready, Queue: r.Queue && !r.Ready, Resume: r.CanResume, Reason: shortened(r.Reason)}, since: before.since}
	if !again || before.ready.Ready != r.Ready {
		w.since = time.Now()
	}
	h.wanted[t] = w
	if err := n.plan.Register(h.Name, t, w.ready); err != nil {
		n.refuse(h, r, err.Error()+": create it with scaffold service create; the registration counts from then on")
		return
	}
	n.tellPolicy(h, t.Service)
	if h.ordered[t.Service] != n.drainMode(h, t.Service) {
		n.tellDrain(h, t.Service)
	}
	if w.ready.Ready && !before.ready.Ready {
		n.changedHands = true
	}
	switch {
	case !again:
		n.instanceEvent("instance.up", h, t, upText(w.ready))
	case before.ready.Ready && !r.Ready:
		n.instanceEvent("instance.unready", h, t, because("instance is not ready", r.Reason))
	case !before.ready.Ready && r.Ready:
		n.instanceEvent("instance.ready", h, t, "instance is ready")
	}
}

func upText(r plan.Readiness) string {
	if r.Ready {
		return "instance is up"
	}
	return because("instance is up and not ready", r.Reason)
}

func (n *network) withdraw(h *host, t sid.Triple) {
	if _, ok := h.wanted[t]; !ok {
		return
	}
	delete(h.wanted, t)
	n.plan.Withdraw(h.Name, t)
	if _, ok := n.names.ByID(t.Service); ok {
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
	if told, knows := h.told[id]; h.session == nil || !ok || knows && told == r.Version {
		return
	}
	h.told[id] = r.Version
	n.news[h] = append(n.news[h], servicePolicy(r, false))
}

func servicePolicy(r names.Record, gone bool) *apiv1.ServicePolicy {
	return &apiv1.ServicePolicy{
		Name: r.Name, Ss: r.ID.SS, Suffix: uint64(r.ID.Suffix), Policy: apiPolicy(r.Policy), Gone: gone,
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

// adopt registers what hosts asked for before the service existed, or before it came back.
func (n *network) adopt(r names.Record) {
	for _, h := range n.hosts {
		if !h.Here {
			continue
		}
		for t, w := range h.wanted {
			if t.Service == r.ID && n.plan.Register(h.Name, t, w.ready) == nil {
				n.tellPolicy(h, r.ID)
				n.instanceEvent("instance.up", h, t, upText(w.ready))
			}
		}
	}
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
