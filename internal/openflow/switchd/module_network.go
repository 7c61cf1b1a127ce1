package switchd

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/controller"
)

// Bounds of what a module may say.
const (
	reportBurst   = 50
	reportsASec   = 10
	maxReport     = 1024 // bytes
	maxOwnLinks   = 1024 // of one switch
	maxSend       = 65000
	shortestTimer = time.Millisecond
	pathPatience  = 2 * time.Second
)

// HandleSwitches implements controller.Network.
func (m *module) HandleSwitches(f func(controller.Switch)) {
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	q := newFeed(f)
	for _, s := range byKey(m.host.switches) {
		if s.Up {
			q.put(s.Name, s)
		}
	}
	m.switches = append(m.switches, q)
	m.rouse()
}

// HandleHosts implements controller.Network.
func (m *module) HandleHosts(f func(controller.Host)) {
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	q := newFeed(f)
	for _, h := range byKey(m.host.hosts) {
		q.put(h.Name, h)
	}
	m.hosts = append(m.hosts, q)
	m.rouse()
}

// HandleHeld implements controller.Network.
func (m *module) HandleHeld(f func(switchName string, calls uint64)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped {
		m.held = append(m.held, newFeed(func(h heldBy) { f(h.at, h.calls) }))
	}
}

// HandleExpired implements controller.Network.
func (m *module) HandleExpired(f func(switchName string, gone []controller.Flow)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	m.expired = append(m.expired, newFeed(func(e expiredAt) {
		// What the module has named again by now, before it could hear of this, is not gone.
		if gone := m.host.flows.unwanted(m.of, e.at, e.gone); len(gone) > 0 {
			f(e.at, gone)
		}
	}))
}

// Every implements controller.Network.
func (m *module) Every(d time.Duration, f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	d = max(d, shortestTimer)
	t := &timer{f: f}
	t.tick = time.AfterFunc(d, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.stopped {
			return
		}
		t.due = true
		t.tick.Reset(d)
		m.rouse()
	})
	m.timers = append(m.timers, t)
}

// Subscribe implements controller.Network.
func (m *module) Subscribe(s controller.Subscription, f func(controller.Packet)) error {
	if m.isStopped() {
		return controller.ErrStopped
	}
	return m.host.flows.subscribe(&subscriber{Subscription: s, of: m.of, module: m, to: f})
}

// Switches implements controller.Network.
func (m *module) Switches() []controller.Switch {
	if m.isStopped() {
		return nil
	}
	return m.host.plane.switches()
}

// Hosts implements controller.Network.
func (m *module) Hosts() []controller.Host {
	if m.isStopped() {
		return nil
	}
	return m.host.mind.hosts()
}

// Links implements controller.Network.
func (m *module) Links() []controller.Link {
	if m.isStopped() {
		return nil
	}
	return m.host.mind.links()
}

// Path implements controller.Network.
func (m *module) Path(from, to string) (controller.Path, error) {
	if m.isStopped() {
		return controller.Path{}, controller.ErrStopped
	}
	ctx, cancel := context.WithTimeout(context.Background(), pathPatience)
	defer cancel()
	return m.host.mind.path(ctx, from, to)
}

// SetFlows implements controller.Network.
func (m *module) SetFlows(at string, flows []controller.Flow) error {
	if m.isStopped() {
		return controller.ErrStopped
	}
	return m.host.flows.set(m.of, at, owned(flows))
}

// ChangeFlows implements controller.Network.
func (m *module) ChangeFlows(at string, set, unset []controller.Flow) error {
	if m.isStopped() {
		return controller.ErrStopped
	}
	return m.host.flows.change(m.of, at, owned(set), owned(unset))
}

func owned(flows []controller.Flow) []ownFlow {
	own := make([]ownFlow, len(flows))
	for i, f := range flows {
		own[i] = ownFlow{Flow: f}
	}
	return own
}

// Tables implements controller.Network.
func (m *module) Tables(n int) ([]uint8, error) {
	if m.isStopped() {
		return nil, controller.ErrStopped
	}
	return m.host.flows.allot(m.of, n)
}

// Send implements controller.Network.
func (m *module) Send(at string, out controller.Out) error {
	if m.isStopped() {
		return controller.ErrStopped
	}
	if len(out.Data) == 0 || len(out.Data) > maxSend {
		return fmt.Errorf("a packet of %d bytes: want 1 to %d", len(out.Data), maxSend)
	}
	if err := checkSend(out.Actions); err != nil {
		return err
	}
	return m.host.plane.send(at, out)
}

// SetLinks implements controller.Network.
func (m *module) SetLinks(at string, links []controller.Link) error {
	if m.isStopped() {
		return controller.ErrStopped
	}
	if len(links) > maxOwnLinks {
		return fmt.Errorf("%d links of switch %s: at most %d", len(links), at, maxOwnLinks)
	}
	return m.host.flows.setLinks(m.of, at, links)
}

// Report implements controller.Network.
func (m *module) Report(subject, text string) {
	m.mu.Lock()
	ok := !m.stopped && m.reports.Allow()
	m.mu.Unlock()
	if !ok {
		m.refused.Add(1)
		return
	}
	m.host.events.event("module.report", subject, m.name+": "+text[:min(len(text), maxReport)], "module", m.name)
}
