package switchd

import (
	"fmt"
	"math/rand/v2"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/router/answers"
	"scaffold.dev/scaffold/sid"
)

// joinedAs is what the member and the controller know of each other.
type joinedAs struct {
	extensions bool // the switch has Nicira's
	noMeters   bool
	answers    bool // and can answer neighbour solicitations itself
	everyMs    uint32
	limits     func(everyMs uint32) liveness.Limits
	told       *apiv1.Neighbours // last, in this session
	counters   *apiv1.RouterCounters
}

// join is the first report of a session. The boot id is the switch's: one that two daemons claim is refused.
func (m *member) join() *apiv1.RouterJoin {
	return &apiv1.RouterJoin{Name: m.spec.Name, Service: m.spec.Service, BootId: fmt.Sprintf("%s%016x", agent.SwitchBoot, m.spec.Datapath),
		Version: obs.Version(), Generation: m.writer.generation, Block: m.spec.Block, LinkKey: m.d.keys.Public()}
}

// joined takes the router's place in the network, and tells the controller all that it may have missed.
func (m *member) joined(s *agent.Session, j *apiv1.RouterJoined) error {
	space, own, err := agent.Place(j)
	if err != nil {
		return fmt.Errorf("the controller's answer: %w", err)
	}
	if m.tables == nil || space != m.space {
		m.space = space
		m.openTables()
	}
	m.locator = own
	m.tables.SetRouter(own, m.spec.Service)
	m.answers.SetRouter(space, own, m.spec.Service)
	m.joinedAs.everyMs, m.joinedAs.told = max(1, j.ProbeIntervalMs), nil
	m.joinedAs.counters = nil
	m.joinedAs.limits = func(every uint32) liveness.Limits { return agent.Limits(j, every) }
	m.session = s
	m.log.Info("joined", "network", j.Network, "locator", own)
	m.show()
	m.listed(j.Routers)
	m.linksChanged()
	m.hosts.Tell(s)
	return nil
}

// parted ends a session.
func (m *member) parted(s *agent.Session) {
	if m.session == s {
		m.session = nil
	}
}

// listed takes up who is in the network, for all switches.
func (m *member) listed(all *apiv1.RouterKeys) {
	if m.d.keys.Take(all) {
		m.d.listed()
	}
}

// openTables begins with what the switch has, once that is read.
func (m *member) openTables() {
	m.tables = m.newTables()
	m.answers = answers.New()
	for _, p := range m.ports {
		m.tables.SetPort(p.Name, p.Number)
	}
	m.wanted = m.own(m.tables)
	m.begin()
}

func (m *member) newTables() *oftables.Tables {
	o := oftables.Options{Version: m.conn.Version(), Extensions: m.joinedAs.extensions, MAC: m.mac,
		First: m.d.cfg.FirstTable, NoMeters: m.joinedAs.noMeters}
	if m.joinedAs.answers {
		o.LinkLocal = oftables.LinkLocal(m.mac)
	}
	t := oftables.New(m.space, o)
	for port, mtu := range m.spec.MTUs {
		t.SetMTU(port, mtu)
	}
	return t
}

// own has tables hold what owners wish, and leave alone what those have there who keep it and have not spoken yet. It
// returns how often owners had said what they wish.
func (m *member) own(t *oftables.Tables) map[owner]uint64 {
	wishes, calls := m.d.wishes.flowsAt(m.spec.Name)
	for _, of := range m.d.keepers {
		if calls[of] == 0 {
			t.Keep(uint16(of))
		}
	}
	for of, flows := range wishes {
		t.Own(uint16(of), flowsOf(flows))
	}
	return calls
}

// ownFlows takes over what has changed of an owner's wishes.
func (m *member) ownFlows(of owner) {
	if m.tables == nil {
		return // openTables takes all of them
	}
	n := m.d.wishes.news(of, m.spec.Name)
	if n.none() && n.calls == m.wanted[of] {
		return
	}
	if n.calls > 0 {
		m.tables.Unkeep(uint16(of))
		if m.wanted == nil {
			m.wanted = map[owner]uint64{}
		}
		m.wanted[of] = n.calls
	}
	if n.whole {
		m.tables.Own(uint16(of), flowsOf(n.set))
	} else {
		m.tables.Change(uint16(of), flowsOf(n.set), flowsOf(n.unset))
	}
	if !m.writer.synced && (n.whole || len(n.set) > 0) { // prime takes nothing out
		m.prime()
	}
}

// order obeys an order of the stream that brings no rules.
func (m *member) order(o *apiv1.RouterOrder) {
	switch o := o.Order.(type) {
	case *apiv1.RouterOrder_Routers:
		m.listed(o.Routers)
	case *apiv1.RouterOrder_Begin:
		m.tables.Begin()
		m.answers.Begin()
		m.writer.naming.Begin()
	case *apiv1.RouterOrder_Commit:
		m.tables.Commit()
		m.answers.Commit()
		for _, l := range m.writer.naming.Commit(m.hosts.Locators()) {
			m.unprobe(l)
		}
		m.writer.synced = true
		m.writer.ordered = o.Commit.Generation
		m.lead(o.Commit.Generation)
	}
}

// rules takes rules over, of a snapshot or as a change.
func (m *member) rules(generation uint64, r plan.Rules, unread error) {
	if unread != nil {
		m.writer.errs = append(m.writer.errs, unread)
	}
	m.tables.Apply(r)
	m.answers.Apply(r)
	for _, p := range r.Probes {
		if p.Gone {
			m.unprobe(p.Locator)
			continue
		}
		m.writer.naming.Name(p.Locator)
		m.probe(p.Locator, p.Port)
	}
	if !m.writer.naming.Under() {
		m.writer.ordered = generation
	}
}

func (m *member) probe(l sid.Locator, port string) {
	m.hosts.Probe(l, port)
	m.probes.Add(l, port, rand.Uint64())
	if p, ok := m.portNamed(port); !ok || !p.Up {
		m.hostChanges(m.probes.Carrier(port, false))
	}
}

func (m *member) unprobe(l sid.Locator) {
	m.hosts.Unprobe(l)
	m.probes.Remove(l)
}

// hostChanges takes what the probes found.
func (m *member) hostChanges(changes []liveness.Change) { m.hosts.Changed(m.session, changes, m.log) }
