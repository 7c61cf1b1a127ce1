package switchd

import (
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// linksChanged tells the tables where neighbours are, and the controller of links.
func (m *member) linksChanged() {
	all := m.d.wishes.linksAt(m.spec.Name)
	for _, l := range all {
		if m.tables != nil && l.Via.IsValid() && l.MAC != [6]byte{} {
			m.tables.SetNeighbour(l.Port, l.Via, ofp.MAC(l.MAC))
		}
	}
	report := &apiv1.Neighbours{Partial: m.looking}
	for _, l := range all {
		report.Links = append(report.Links, m.neighbour(l))
	}
	if m.session == nil || proto.Equal(report, m.joinedAs.told) {
		return
	}
	m.joinedAs.told = report
	m.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: report}})
}

func (m *member) neighbour(l controller.Link) *apiv1.Neighbour {
	n := &apiv1.Neighbour{Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Up: l.Up, Cost: max(1, l.Cost), Reason: l.Reason}
	if l.Via.IsValid() {
		n.Via = l.Via.WithZone("").String()
	}
	if p, ok := m.portNamed(l.Port); !ok || !p.Up {
		n.Up, n.Reason = false, "carrier"
	}
	return n
}
