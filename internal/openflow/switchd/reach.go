package switchd

import (
	"fmt"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// The daemon is the plane of its modules.
var _ plane = (*daemon)(nil)

func (d *daemon) switches() (all []controller.Switch) {
	for _, m := range d.registry.members() {
		if s := m.view.Load(); s != nil {
			all = append(all, *s)
		}
	}
	return all
}

func (d *daemon) setFlows(of owner, at string, flows []ownFlow, calls uint64) error {
	d.wishes.setFlows(of, at, flows, calls)
	if m := d.registry.member(at); m != nil {
		m.nudge(func() { m.ownFlows(of) })
	}
	return nil
}

func (d *daemon) changeFlows(of owner, at string, set, unset []ownFlow, calls uint64) error {
	d.wishes.changeFlows(of, at, set, unset, calls)
	if m := d.registry.member(at); m != nil {
		m.nudge(func() { m.ownFlows(of) })
	}
	return nil
}

func (d *daemon) setLinks(of owner, at string, links []controller.Link) error {
	d.wishes.setLinks(of, at, links)
	if m := d.registry.member(at); m != nil {
		m.nudge(m.linksChanged)
	}
	return nil
}

func (d *daemon) send(at string, out controller.Out) error {
	m := d.registry.member(at)
	if m == nil {
		return fmt.Errorf("switch %s is not connected", at)
	}
	if !m.packetOut(out.In, out.Actions, out.Data) {
		return fmt.Errorf("switch %s takes no more packets just now", at)
	}
	return nil
}

// packetOut sends a packet, or drops it where the switch takes too little.
func (m *member) packetOut(in ofp.Port, actions []ofp.Action, data []byte) bool {
	if in == 0 {
		in = ofp.PortController
	}
	return m.conn.TrySend(ofp.PacketOut{InPort: in, Actions: actions, Data: data})
}
