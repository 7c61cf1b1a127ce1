package steer

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/packet/segment"
)

const (
	// mostFirsts is how many first packets wait for the controller's word at a time; more go on unboosted.
	mostFirsts = 1024
	// firstsWait is how long one does. The controller decides before: agents have 10 s.
	firstsWait = 12 * time.Second
	// mostPassed is how many connections are known that pass unboosted.
	mostPassed = 8192
	// passes is for how long: the client may send its first packet again, and the server may have answered it already. Linux gives
	// up after 63 s.
	passes = 64 * time.Second
)

// firsts are first packets that a switch has punted.
type firsts struct {
	last    uint64
	waiting map[uint64]*first
	of      map[pair]*first
	passed  map[pair]time.Time
}

// A pair is a connection at a switch: the client is a leg's host.
type pair struct {
	at string
	legKey
}

type first struct {
	pair
	number uint64
	packet controller.Packet // the last: a client may send several
	since  time.Time
}

func newFirsts() firsts {
	return firsts{waiting: map[uint64]*first{}, of: map[pair]*first{}, passed: map[pair]time.Time{}}
}

// begun are the ends of a segment that was punted. Its checksum is completed: a sender on the switch's own machine leaves that to a
// device on the way, and this is where its way has ended. What is none that could be carried goes on: behind a tag or other headers,
// or with a signature (RFC 2385, RFC 5925) that an agent could not make. A damaged one is dropped, as the kernel would. The caller has
// the lock.
func (m *Module) begun(p *controller.Packet) (from, to netip.AddrPort, ok bool) {
	s, err := segment.Parse(p.Data)
	if err != nil || s.Has(optionMD5) || s.Has(optionAO) {
		m.out(*p, []controller.Action{controller.SetField{OXM: seen}})
		return from, to, false
	}
	if p.Data, err = segment.Completed(p.Data); err != nil {
		return from, to, false
	}
	from, to = s.Ends()
	return from, to, true
}

// came takes one, and asks the controller about it unless it has been asked.
func (m *Module) came(p controller.Packet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	client, server, ok := m.begun(&p)
	if !ok {
		return
	}
	of := pair{p.Switch, legKey{client, server}}
	if f := m.firsts.of[of]; f != nil {
		f.packet = p
		return
	}
	_, passed := m.firsts.passed[of]
	if passed || m.session == nil || len(m.firsts.waiting) >= mostFirsts {
		m.pass(of, p)
		return
	}
	m.firsts.last++
	f := &first{of, m.firsts.last, p, time.Now()}
	m.firsts.waiting[f.number], m.firsts.of[of] = f, f
	m.send(&apiv1.SteerReport{Report: &apiv1.SteerReport_Syn{Syn: &apiv1.SteerSYN{
		Switch: p.Switch, Number: f.number, Client: client.String(), Server: server.String(),
	}}})
}

// begins takes what an agent begins, or somebody answers, and sends it on: by its leg where there is one.
func (m *Module) begins(p controller.Packet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to, ok := m.begun(&p)
	if !ok {
		return
	}
	actions := []controller.Action{controller.SetField{OXM: seen}}
	if l, is := m.legs[p.Switch][legKey{from, to}]; is {
		actions = l.toAgent()
	} else if l, is := m.placed(p.Switch).agents[legKey{from, to}]; is {
		actions = l.toHost()
	}
	m.out(p, actions)
}

// decided does what the controller says of one.
func (m *Module) decided(d *apiv1.SteerFirst) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.firsts.waiting[d.Number]
	if f == nil {
		return
	}
	m.forget(f)
	switch d.Verdict {
	case apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT:
		if l, is := m.legs[f.at][f.legKey]; is {
			m.out(f.packet, l.toAgent())
		} // else it has gone meanwhile, and the client asks again
	case apiv1.BoostVerdict_BOOST_VERDICT_PASS:
		m.pass(f.pair, f.packet)
	}
}

func (m *Module) forget(f *first) {
	delete(m.firsts.waiting, f.number)
	delete(m.firsts.of, f.pair)
}

// pass lets one go on, and those that the client sends again.
func (m *Module) pass(of pair, p controller.Packet) {
	if len(m.firsts.passed) < mostPassed {
		m.firsts.passed[of] = time.Now()
	}
	m.out(p, []controller.Action{controller.SetField{OXM: seen}})
}

// out has a switch send a packet on its way: as if it had come again, to whoever is behind boost's rules.
func (m *Module) out(p controller.Packet, actions []controller.Action) {
	err := m.net.Send(p.Switch, controller.Out{In: p.Number, Actions: append(actions, controller.Output{Port: controller.PortTable}), Data: p.Data})
	if err != nil {
		m.log.Warn("a first packet is lost; its client sends another", "switch", p.Switch, "error", err)
	}
}

// passAll lets all go on: the controller is away.
func (m *Module) passAll() {
	for _, f := range m.firsts.waiting {
		m.forget(f)
		m.pass(f.pair, f.packet)
	}
}

// The kinds of TCP's options that sign a segment.
const (
	optionMD5 = 19
	optionAO  = 29
)

// look lets go on what has waited for long.
func (m *Module) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, f := range m.firsts.waiting {
		if now.Sub(f.since) > firstsWait {
			m.forget(f)
			m.pass(f.pair, f.packet)
		}
	}
	for of, at := range m.firsts.passed {
		if now.Sub(at) > passes {
			delete(m.firsts.passed, of)
		}
	}
}
