package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// exportBoost makes metrics of what agents of boost say.
func (n *network) exportBoost(m *obs.Metrics) {
	agent, trunk := []string{"agent"}, []string{"agent", "other"}
	m.GaugeTable("boost_agent_here", "1 where an agent of boost has a stream to its controller, 0 where it goes on with what it was told.", agent,
		n.eachAgent(func(*apiv1.BoostAgent) bool { return true }, func(a *apiv1.BoostAgent) float64 { return one(here(a)) }))
	m.GaugeTable("boost_sessions", "Connections that an agent carries, at either end.", agent,
		n.eachAgent(here, func(a *apiv1.BoostAgent) float64 { return float64(a.Sessions) }))
	m.GaugeTable("boost_load", "Share of the processors that an agent may use that it has used of late.", agent,
		n.eachAgent(here, func(a *apiv1.BoostAgent) float64 { return a.Load }))
	m.GaugeTable("boost_trunk_up", "1 where an agent has a connection to another one.", trunk,
		n.eachTrunk(func(t *apiv1.BoostTrunk) float64 { return one(t.Up) }))
	m.GaugeTable("boost_trunk_rtt_seconds", "The shortest round trip between two agents, 0 where none was measured.", trunk,
		n.eachTrunk(func(t *apiv1.BoostTrunk) float64 { return float64(t.RttUs) / 1e6 }))
	m.CounterTable("boost_trunk_sent_bytes_total", "Bytes that an agent's worker has sent to another agent.", trunk,
		n.eachTrunk(func(t *apiv1.BoostTrunk) float64 { return float64(t.Sent) }))
	m.CounterTable("boost_trunk_resent_bytes_total", "Of these, bytes that went out again.", trunk,
		n.eachTrunk(func(t *apiv1.BoostTrunk) float64 { return float64(t.Resent) }))
	m.CounterTable("boost_trunk_moved_sessions_total", "Sessions between two agents with which a third one has gone on, when the other one was silent.", trunk,
		n.eachTrunk(func(t *apiv1.BoostTrunk) float64 { return float64(t.Moved) }))
	m.CounterTable("boost_trunk_unmoved_sessions_total", "Sessions between two agents with which a third one was asked to go on, and has not.", trunk,
		n.eachTrunk(func(t *apiv1.BoostTrunk) float64 { return float64(t.NotMoved) }))
	m.GaugeTable("boost_trunk_bound", "1 for what of the path to another agent binds what is sent there, where that is clear.", []string{"agent", "other", "by"}, func(add obs.Add) {
		n.trunks(func(a *apiv1.BoostAgent, t *apiv1.BoostTrunk) {
			if by := t.GetPath().GetBound(); by != "" {
				add(1, a.Name, t.Agent, by)
			}
		})
	})
	way := []string{"agent", "other", "own", "theirs"}
	m.GaugeTable("boost_path_up", "1 where one of the paths to another agent has a connection, by the addresses at its ends.", way,
		n.eachWay(func(w *apiv1.BoostWay) float64 { return one(w.Up) }))
	m.GaugeTable("boost_path_rtt_seconds", "The shortest round trip of a path, 0 where none was measured.", way,
		n.eachWay(func(w *apiv1.BoostWay) float64 { return float64(w.RttUs) / 1e6 }))
	m.CounterTable("boost_path_sent_bytes_total", "Bytes of what is carried that an agent's worker has sent over a path, with those that went out again.", way,
		n.eachWay(func(w *apiv1.BoostWay) float64 { return float64(w.Sent) }))
	m.CounterTable("boost_path_received_bytes_total", "Bytes that came over it.", way,
		n.eachWay(func(w *apiv1.BoostWay) float64 { return float64(w.Received) }))
	m.GaugeTable("boost_path_bound", "1 for what of a path binds what is sent there, where that is clear.", append(way[:4:4], "by"), func(add obs.Add) {
		n.ways(func(a *apiv1.BoostAgent, t *apiv1.BoostTrunk, w *apiv1.BoostWay) {
			if by := w.GetPath().GetBound(); by != "" {
				add(1, a.Name, t.Agent, w.Own, w.Other, by)
			}
		})
	})
	m.GaugeTable("boost_rewritten", "Connections that the switches of a site rewrite for its agents.", []string{"site"}, func(add obs.Add) {
		if f := n.figures(); f != nil {
			for site, count := range f.boost.Legs {
				add(float64(count), site)
			}
		}
	})
	m.CounterTable("boost_first_packets_total", "First packets that waited at a switch for agents, by what became of them.", []string{"became"}, func(add obs.Add) {
		if f := n.figures(); f != nil {
			for word, count := range f.boost.Firsts {
				add(float64(count), word)
			}
		}
	})
	m.GaugeTable("boost_bound", "Directions of connections that are carried, by what binds them.", []string{"by"}, func(add obs.Add) {
		if f := n.figures(); f != nil {
			for by, count := range f.boost.Bound {
				add(float64(count), by)
			}
		}
	})
}

// here reports whether an agent tells how it is: of one that is away nobody knows.
func here(a *apiv1.BoostAgent) bool { return a.State != "away" }

func (n *network) eachAgent(which func(*apiv1.BoostAgent) bool, of func(*apiv1.BoostAgent) float64) func(obs.Add) {
	return func(add obs.Add) {
		if f := n.figures(); f != nil {
			for _, a := range f.boost.Agents {
				if which(a) {
					add(of(a), a.Name)
				}
			}
		}
	}
}

func (n *network) eachTrunk(of func(*apiv1.BoostTrunk) float64) func(obs.Add) {
	return func(add obs.Add) {
		n.trunks(func(a *apiv1.BoostAgent, t *apiv1.BoostTrunk) { add(of(t), a.Name, t.Agent) })
	}
}

// trunks leaves out a trunk that an agent names twice: two samples of the same labels would spoil the whole scrape.
func (n *network) trunks(each func(*apiv1.BoostAgent, *apiv1.BoostTrunk)) {
	f := n.figures()
	if f == nil {
		return
	}
	for _, a := range f.boost.Agents {
		told := map[string]bool{}
		for _, t := range a.Trunks {
			if !told[t.Agent] {
				told[t.Agent] = true
				each(a, t)
			}
		}
	}
}

func (n *network) eachWay(of func(*apiv1.BoostWay) float64) func(obs.Add) {
	return func(add obs.Add) {
		n.ways(func(a *apiv1.BoostAgent, t *apiv1.BoostTrunk, w *apiv1.BoostWay) {
			add(of(w), a.Name, t.Agent, w.Own, w.Other)
		})
	}
}

// ways leaves out a path that an agent names twice, as trunks does.
func (n *network) ways(each func(*apiv1.BoostAgent, *apiv1.BoostTrunk, *apiv1.BoostWay)) {
	n.trunks(func(a *apiv1.BoostAgent, t *apiv1.BoostTrunk) {
		told := map[[2]string]bool{}
		for _, w := range t.Ways {
			if ends := [2]string{w.Own, w.Other}; !told[ends] {
				told[ends] = true
				each(a, t, w)
			}
		}
	})
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
