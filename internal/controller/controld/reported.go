package controld

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/notes"
	"scaffold.dev/scaffold/internal/controller/controld/registrations"
	"scaffold.dev/scaffold/internal/controller/controld/session"
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
		n.registrations.Replace(name, m.Snapshot.GetEntries())
		h.reported = true
	case *apiv1.HostReport_Delta:
		for _, r := range m.Delta.GetEntries() {
			n.registrations.Take(name, r)
		}
	case *apiv1.HostReport_Load:
		n.load(h, m.Load)
	case *apiv1.HostReport_Event:
		n.notes.FromHost(h.Name, &h.meter, m.Event)
	case *apiv1.HostReport_Attach:
		s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: n.places.Attach(&h.Host, m.Attach)}})
	case *apiv1.HostReport_Detach:
		n.places.Detach(&h.Host, m.Detach)
	case *apiv1.HostReport_Prefer:
		n.places.Prefer(&h.Host, sid.Locator(m.Prefer.GetLocator()))
	case *apiv1.HostReport_Leave:
		n.leave(h, m.Leave.GetReason(), false)
		s.End(nil)
	}
}

// load takes what a host says of its load, and notes which drained instances have no flow left.
func (n *network) load(h *host, l *apiv1.Load) {
	if err := h.checkLoad(l); err != nil {
		n.metrics.refusedEvents.Inc()
		if notes.MayTell(&h.meter) {
			n.events.Tell("host.error", h.Name, "its report of its load is not believed, the one before stays: "+err.Error())
		}
		return
	}
	h.ahead = session.Ahead(l.NowUnixMs)
	before := h.load
	h.load = l
	n.registrations.Each(h.Name, func(t sid.Triple, _ registrations.Registration) {
		r, ok := n.names.ByID(t.Service)
		if !ok || !n.overrides.Of(t.Service, h.Name).Drain {
			return
		}
		was, _ := loadOf(before, t)
		if now, _ := loadOf(l, t); was > 0 && now == 0 {
			n.events.Tell("service.drained", r.Name, fmt.Sprintf("%s %v/%d has no flow left", h.Name, t.Proto, t.Port), "host", h.Name)
		}
	})
}
