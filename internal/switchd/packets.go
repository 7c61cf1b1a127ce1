package switchd

import (
	"time"

	"scaffold.dev/scaffold/controller"
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
	m.answer(m.answers.answer(time.Now(), id, p.Data), p.InPort())
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
