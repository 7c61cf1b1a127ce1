package switchd

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
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
	m.joinedAs.answers = m.joinedAs.extensions && answersSolicited(desc.Software)
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
		MAC: m.mac, LinkLocal: oftables.LinkLocal(m.mac), Generation: m.writer.generation}
	if m.locator != 0 {
		s.Locator = m.locator.Host()
	}
	for _, n := range slices.Sorted(maps.Keys(m.ports)) {
		s.Ports = append(s.Ports, m.ports[n])
	}
	m.view.Store(s)
	m.d.audience.changed(*s)
}

// answersSolicited reports whether an Open vSwitch of the version can make an advertisement of a solicitation, for which
// it has fields since 2.11. A switch that does not know a field refuses all that is told it with the entry.
func answersSolicited(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(major)
	y, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (x > 2 || x == 2 && y >= 11)
}
