package steer

import (
	"fmt"
	"slices"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// placed is what was put into a switch.
type placed struct {
	calls    uint64         // so far
	under    []call         // of these, those that the switch has not obeyed yet
	expected map[string]leg // by the matches of their flows
	agents   map[legKey]leg // by agent and host
	latest   uint64         // generation of the last change of legs
}

// A call is one by which rules were put into a switch.
type call struct {
	number      uint64
	rules, legs uint64 // generations; 0: it was not about them, or not all that was told, for want of a port
}

func (m *Module) placed(name string) *placed {
	p := m.set[name]
	if p == nil {
		p = &placed{expected: map[string]leg{}, agents: map[legKey]leg{}}
		m.set[name] = p
	}
	return p
}

// place puts all that was told into a switch.
func (m *Module) place(name string) {
	m.setting.Lock()
	defer m.setting.Unlock()
	m.mu.Lock()
	told, at := m.told[name], m.known[name] // of one that has not come yet no port is known
	if told == nil {
		m.mu.Unlock()
		return
	}
	flows, whole, err := flowsOf(told, at)
	p := m.placed(name)
	c := call{legs: max(told.Generation, p.latest)} // all legs are among them
	if whole {
		c.rules = told.Generation
	}
	p.expected, p.agents = map[string]leg{}, map[legKey]leg{}
	for _, l := range m.legs[name] {
		flows = append(flows, p.expect(l)...)
	}
	m.mu.Unlock()
	m.doing(name, p, c, err, func() error { return m.net.SetFlows(name, flows) })
}

// expect notes the flows of a leg, which the switch may take out by itself.
func (p *placed) expect(l leg) []controller.Flow {
	flows := l.flows()
	for _, f := range flows {
		p.expected[f.Match.String()] = l
	}
	p.agents[legKey{l.agent, l.host}] = l
	return flows
}

// doing makes a call. It is counted before it is made: the switch may have obeyed before it returns.
func (m *Module) doing(name string, p *placed, c call, err error, do func() error) {
	if err == nil {
		m.mu.Lock()
		p.calls++
		c.number = p.calls
		p.under = append(p.under, c)
		m.mu.Unlock()
		if err = do(); err == nil {
			return
		}
		m.mu.Lock()
		p.calls-- // what the switch had stays, and no call is counted
		p.under = p.under[:len(p.under)-1]
		m.mu.Unlock()
	}
	m.refused(name, err)
}

// change puts in and takes out what was told of legs.
func (m *Module) change(told *apiv1.SteerLegs) {
	m.setting.Lock()
	defer m.setting.Unlock()
	var set, unset []controller.Flow
	var wrong error
	m.mu.Lock()
	p := m.placed(told.Switch)
	p.latest = max(p.latest, told.Generation)
	legs := m.legs[told.Switch]
	for _, t := range told.Unset {
		l, err := readLeg(t)
		if err != nil {
			wrong = err
		} else if legs[l.key()] == l { // else another one has its place
			delete(legs, l.key())
			unset = append(unset, p.unexpect(l)...)
		}
	}
	for _, t := range told.Set {
		l, err := readLeg(t)
		if err != nil || legs == nil { // the rules of the switch are to come, with all legs
			wrong = err
			continue
		}
		if was, is := legs[l.key()]; is {
			unset = append(unset, p.unexpect(was)...)
		}
		legs[l.key()] = l
		set = append(set, p.expect(l)...)
	}
	unset = slices.DeleteFunc(unset, func(f controller.Flow) bool { // what the next leg of the same hosts has is replaced
		_, stays := p.expected[f.Match.String()]
		return stays
	})
	m.mu.Unlock()
	if wrong != nil {
		m.refused(told.Switch, wrong)
	}
	if legs == nil {
		return
	}
	m.doing(told.Switch, p, call{legs: told.Generation}, nil, func() error { return m.net.ChangeFlows(told.Switch, set, unset) })
}

func (p *placed) unexpect(l leg) []controller.Flow {
	flows := l.flows()
	for _, f := range flows { // another leg may have been given the same port of the agent's since
		if p.expected[f.Match.String()] == l {
			delete(p.expected, f.Match.String())
		}
	}
	if k := (legKey{l.agent, l.host}); p.agents[k] == l {
		delete(p.agents, k)
	}
	return flows
}

// held tells that a switch has the rules of so many calls.
func (m *Module) held(name string, calls uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.set[name]
	if p == nil {
		return
	}
	news := &apiv1.Steered{Switch: name}
	for len(p.under) > 0 && p.under[0].number <= calls {
		c := p.under[0]
		p.under = p.under[1:]
		news.Generation, news.Legs = max(news.Generation, c.rules), max(news.Legs, c.legs)
	}
	if news.Generation != 0 || news.Legs != 0 {
		m.send(&apiv1.SteerReport{Report: &apiv1.SteerReport_Steered{Steered: news}})
	}
}

// expired tells of legs that nothing has come by for long. The other half of one stays: where several switches are on the way, each
// sees one of them.
func (m *Module) expired(name string, gone []controller.Flow) {
	over := &apiv1.SteerLegs{Switch: name}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.placed(name)
	for _, f := range gone {
		l, is := p.expected[f.Match.String()]
		if !is {
			continue
		}
		delete(p.expected, f.Match.String())
		told, ofAgent := l.message(), false
		for i, half := range l.flows() {
			_, stays := p.expected[half.Match.String()]
			told.Silent = told.Silent || stays
			ofAgent = ofAgent || i == fromAgent && half.Match.String() == f.Match.String()
		}
		if told.Silent && !ofAgent {
			continue // what the host says: its agent may say much
		}
		if !told.Silent {
			delete(m.legs[name], l.key())
			p.unexpect(l)
		}
		over.Unset = append(over.Unset, told)
	}
	if len(over.Unset) > 0 {
		m.send(&apiv1.SteerReport{Report: &apiv1.SteerReport_LegsOver{LegsOver: over}})
	}
}

// punt has a switch punt the segments that it was told of, and no others.
func (m *Module) punt(rules *apiv1.SteerRules) {
	m.setting.Lock()
	defer m.setting.Unlock()
	m.mu.Lock()
	was := m.punted[rules.Switch]
	now := map[string]bool{}
	m.punted[rules.Switch] = now
	m.mu.Unlock()
	for _, p := range rules.Punts {
		name := puntName(p)
		if now[name] = true; was[name] {
			continue
		}
		s, err := puntOf(rules.Switch, p)
		if err == nil {
			to := m.begins
			if p.Waits {
				to = m.came
			}
			err = m.net.Subscribe(s, to)
		}
		if err != nil {
			delete(now, name)
			m.refused(rules.Switch, fmt.Errorf("what begins connections from %s to %s: %w", p.Source, p.Destination, err))
		}
	}
	for name := range was {
		if !now[name] {
			if err := m.net.Subscribe(controller.Subscription{Name: name, Switch: rules.Switch}, nil); err != nil {
				m.refused(rules.Switch, err)
			}
		}
	}
}
