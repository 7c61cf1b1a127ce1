package switchd

import (
	"time"

	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	"scaffold.dev/scaffold/internal/router/answers"
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
	m.answer(m.answers.Answer(time.Now(), classOf(id), p.Data), p.InPort())
}

// classOf is the reason to punt a packet, as who answers it has it.
func classOf(id uint32) answers.Class {
	switch id {
	case oftables.PuntHopLimit:
		return answers.HopLimit
	case oftables.PuntAddressed:
		return answers.Addressed
	case oftables.PuntNoRoute:
		return answers.NoRoute
	}
	return answers.ByAddress
}

// tooBig answers a packet by the size of the port that it was to leave by, which is in its metadata.
func (m *member) tooBig(p ofp.PacketIn) {
	out, ok := oftables.Leaving(p.Match)
	if mtu := m.spec.MTUs[m.ports[out].Name]; ok && mtu > 0 {
		m.answer(m.answers.TooBig(time.Now(), p.Data, mtu), ofp.PortController)
	}
}

// answer has the switch send what was decided about a packet that came in by a port.
func (m *member) answer(a answers.Answer, in ofp.Port) {
	if a.Frame == nil {
		return
	}
	to := ofp.PortTable
	if a.Back {
		to = ofp.PortIn
	}
	m.packetOut(in, []ofp.Action{ofp.Output{Port: to}}, a.Frame)
}

// countersEvery is between reports of counters, where there is something new.
const countersEvery = time.Second

// tellCounters reports what became of the packets that were punted, as a Linux router does of all.
func (m *member) tellCounters() {
	if m.session == nil || m.answers == nil {
		return
	}
	services, instances := m.answers.Sizes()
	now := &apiv1.RouterCounters{Counters: m.answers.Counts(), Services: uint32(services), Instances: uint32(instances)}
	if proto.Equal(now, m.joinedAs.counters) {
		return
	}
	m.joinedAs.counters = now
	m.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: now}})
}
