package switchd

import (
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/ofp"
	"scaffold.dev/scaffold/internal/oftables"
)

// packet takes one that the switch punted, to whom it is for.
func (m *member) packet(p ofp.PacketIn) {
	of, id, ok := oftables.Punted(p.Cookie)
	port, here := m.ports[p.InPort()]
	switch {
	case !ok || !here && p.InPort() != ofp.PortController:
		return // of a rule that is not ours, or from a port that has gone
	}
	m.counted.PacketIns[owner(of)]++
	switch {
	case owner(of) != ownScaffold:
		m.d.audience.punted(owner(of), id, controller.Packet{Switch: m.spec.Name, Port: port.Name, Number: p.InPort(), Data: p.Data})
		return
	case p.Reason == ofp.ReasonInvalidTTL:
		id = oftables.PuntHopLimit
	}
	if m.answers == nil {
		return
	}
	if id == oftables.PuntOwn {
		m.ownPacket(p.Data)
		return
	}
	if id == oftables.PuntTooBig {
		m.tooBig(p)
		return
	}
	m.answer(m.answers.answer(time.Now(), id, p.Data), p.InPort())
}

// tooBig answers a packet by the size of the port that it was to leave by, which is in its metadata.
func (m *member) tooBig(p ofp.PacketIn) {
	out, ok := oftables.Leaving(p.Match)
	packet, whole := parseNetwork(p.Data)
	if mtu := m.spec.MTUs[m.ports[out].Name]; ok && whole && mtu > 0 {
		m.answer(m.answers.tooBig(time.Now(), packet, mtu), ofp.PortController)
	}
}

// answer has the switch send what was decided about a packet that came in by a port.
func (m *member) answer(a answered, in ofp.Port) {
	if a.frame == nil {
		return
	}
	to := ofp.PortTable
	if a.back {
		to = ofp.PortIn
	}
	m.packetOut(in, []ofp.Action{ofp.Output{Port: to}}, a.frame)
}

// countersEvery is between reports of counters, where there is something new.
const countersEvery = time.Second

// tellCounters reports what became of the packets that were punted, as a Linux router does of all.
func (m *member) tellCounters() {
	if m.session == nil || m.answers == nil {
		return
	}
	now := &apiv1.RouterCounters{Counters: maps.Clone(m.answers.counts), Services: uint32(len(m.answers.services)), Instances: uint32(m.answers.instances)}
	if proto.Equal(now, m.joinedAs.counters) {
		return
	}
	m.joinedAs.counters = now
	m.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: now}})
}
