package switchd

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/ofp"
)

// learnPorts asks the switch what it is and which ports it has.
func (m *member) learnPorts() (what string, err error) {
	ctx, cancel := context.WithTimeout(m.ctx, askTimeout)
	defer cancel()
	parts, err := m.conn.Collect(ctx, ofp.AskPorts{})
	if err != nil {
		return "", err
	}
	for _, part := range parts {
		if ports, ok := part.(ofp.Ports); ok {
			for _, p := range ports {
				m.setPort(p)
			}
		}
	}
	m.joinedAs.noMeters = !m.hasMeters(ctx)
	desc, err := m.d.describe(m.conn)
	m.joinedAs.extensions = strings.HasPrefix(desc.Manufacturer, "Nicira")
	m.show()
	return strings.TrimSpace(desc.Hardware + " " + desc.Software), err
}

// hasMeters asks whether what is punted can be limited at the switch.
func (m *member) hasMeters(ctx context.Context) bool {
	parts, err := m.conn.Collect(ctx, ofp.AskMeterFeatures{})
	if err != nil || len(parts) == 0 {
		return false
	}
	f, ok := parts[0].(ofp.MeterFeatures)
	return ok && f.Max > 0 && f.Bands&(1<<ofp.BandDrop) != 0
}

// isPort: the local port is the switch's own machine, and no router's.
func isPort(n ofp.Port) bool { return n > 0 && n <= ofp.PortMax }

func (m *member) setPort(p ofp.PortDesc) {
	if isPort(p.Number) {
		m.ports[p.Number] = controller.Port{Name: p.Name, Number: p.Number, MAC: p.HW,
			Up: p.Config&ofp.ConfigDown == 0 && p.State&ofp.StateLinkDown == 0}
	}
}

// portStatus takes what the switch says of one port.
func (m *member) portStatus(s ofp.PortStatus) {
	was, known := m.ports[s.Port.Number]
	switch {
	case !isPort(s.Port.Number):
		return
	case s.Reason == ofp.PortDeleted:
		delete(m.ports, s.Port.Number)
	default:
		m.setPort(s.Port)
	}
	now, here := m.ports[s.Port.Number]
	if was == now && known == here {
		return
	}
	if known && (!here || now.Name != was.Name) {
		m.losePort(was)
	}
	if here && m.tables != nil {
		m.tables.SetPort(now.Name, now.Number)
	}
	m.log.Info("port", "name", cmp.Or(now.Name, was.Name), "up", now.Up)
	m.carrier(cmp.Or(now.Name, was.Name), now.Up)
}

func (m *member) losePort(p controller.Port) {
	if m.tables != nil {
		m.tables.RemovePort(p.Name)
	}
	m.carrier(p.Name, false)
}

// carrier tells all who go by a port's state.
func (m *member) carrier(port string, up bool) {
	m.hostChanges(m.probes.Carrier(port, up))
	m.linksChanged()
	m.show()
}

func (m *member) portNamed(name string) (controller.Port, bool) {
	for _, p := range m.ports {
		if p.Name == name {
			return p, true
		}
	}
	return controller.Port{}, false
}

// show makes the member's state visible to modules.
func (m *member) show() {
	s := &controller.Switch{Name: m.spec.Name, Service: m.spec.Service, Datapath: m.spec.Datapath, Version: strings.TrimPrefix(m.conn.Version().String(), "OpenFlow "), Up: m.ctx.Err() == nil,
		MAC: m.mac, LinkLocal: linkLocal(m.mac), Generation: m.writer.generation}
	if m.locator != 0 {
		s.Locator = m.locator.Host()
	}
	for _, n := range slices.Sorted(maps.Keys(m.ports)) {
		s.Ports = append(s.Ports, m.ports[n])
	}
	m.view.Store(s)
	m.d.audience.changed(*s)
}

// linkLocal is the address that the router has on each of its links: RFC 4291, appendix A.
func linkLocal(m ofp.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}
