package switchd

import (
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/userstack"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// message takes a datagram; it is called while a packet is delivered.
func (j *join) message(s *joined, d userstack.Datagram) {
	m, err := wire.Parse(d.Data)
	if err != nil || !d.From.Addr().IsLinkLocalUnicast() {
		j.log.Debug("message not understood", "switch", s.name, "port", d.Port, "from", d.From, "error", err)
		return
	}
	switch m := m.(type) {
	case wire.Solicit:
		j.greet(s, d.Port)
	case wire.Hello:
		if j.own(m.Name) {
			return // links between switches of our own are found in another way
		}
		fresh, key, answer := s.neighbours.Heard(origin(d), m)
		if answer {
			j.toAll(s, d.Port, s.link(key))
		}
		if fresh {
			j.log.Info("neighbour", "switch", s.name, "port", d.Port, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
			j.greet(s, d.Port)
			j.tell(s)
		}
	case wire.Link:
		if j.own(m.Name) {
			return
		}
		fresh, key, answer := s.neighbours.Proved(origin(d), m)
		if answer {
			j.toAll(s, d.Port, s.link(key))
		}
		if fresh {
			j.log.Info("neighbour, proved", "switch", s.name, "port", d.Port, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
			j.tell(s)
		}
	}
}

func origin(d userstack.Datagram) agent.Origin {
	return agent.Origin{Port: d.Port, From: d.From.Addr(), MAC: d.MAC}
}

// link is LINK for a neighbour.
func (s *joined) link(key agent.NeighbourKey) wire.Link {
	return s.neighbours.Link(key, s.is.LinkLocal, s.locator())
}

// prove sends LINK to all neighbours of a switch.
func (j *join) prove(s *joined) {
	for _, p := range s.is.Ports {
		for _, key := range s.neighbours.Due(p.Name) {
			if p.Up && !j.own(key.Peer) {
				j.toAll(s, p.Name, s.link(key))
			}
		}
	}
}

// listed takes up who is in the network: who has another key is asked to prove himself, and who is new hears of us.
func (j *join) listed() {
	j.locked(func() {
		for _, s := range j.switches {
			s.neighbours.Listed()
			if !s.is.Up {
				continue
			}
			for _, p := range s.is.Ports {
				if p.Up {
					j.greet(s, p.Name)
				}
			}
			j.prove(s)
			j.tell(s)
		}
	})
}

// own says whether a switch of that name is ours.
func (j *join) own(name string) bool { return j.switches[name] != nil }

// greet sends HELLO to a port.
func (j *join) greet(s *joined, port string) {
	j.toAll(s, port, wire.Hello{Service: s.is.Service, Relay: true, RelayPort: j.relay, Locator: s.locator(), Name: s.name, Port: port})
}

// locator is the router's own, 0 while the controller has given none.
func (s *joined) locator() sid.Locator {
	if !s.is.Locator.IsValid() {
		return 0
	}
	return sid.LocatorOf(s.is.Locator)
}

// solicit asks for the HELLOs of the routers at a port.
func (j *join) solicit(s *joined, port string) { j.toAll(s, port, wire.Solicit{Name: s.name}) }

func (j *join) toAll(s *joined, port string, m wire.Message) {
	if !s.delivered {
		return
	}
	err := s.stack.SendUDP(port, sid.Port, netip.AddrPortFrom(allNodes, sid.Port), m.Append(nil))
	if err != nil {
		j.log.Warn("message not sent", "switch", s.name, "port", port, "type", m.Type(), "error", err)
	}
}

// tell reports the links of a switch where they changed.
func (j *join) tell(s *joined) {
	now := j.links(s)
	if slices.Equal(now, s.told) {
		return
	}
	if err := j.net.SetLinks(s.name, now); err != nil {
		j.log.Warn("links not told", "switch", s.name, "error", err)
		return
	}
	s.told = now
}

// links are what the controller is told. Links between switches of our own are found in another way.
func (j *join) links(s *joined) (links []controller.Link) {
	for _, l := range s.neighbours.Links(func(port string) bool { return wasUp(s.is, port) }) {
		if !j.own(l.Peer) {
			links = append(links, controller.Link{Router: s.name, Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: l.Via, MAC: l.MAC,
				Up: l.Up, Reason: l.Reason, Cost: 1})
		}
	}
	return links
}

func (j *join) tellAll() {
	for _, s := range j.switches {
		j.tell(s)
	}
}
