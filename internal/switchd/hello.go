package switchd

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/userstack"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// silentTicks is how many HELLO intervals a neighbour may miss; one is forgotten after forgetTicks.
const (
	silentTicks = 3
	forgetTicks = 60
)

// maxNeighbours bounds what HELLOs can make us keep of a port.
const maxNeighbours = 64

// A neighbourKey is one link to one router.
type neighbourKey struct {
	port string
	peer string
}

// A neighbour is a router that greets us.
type neighbour struct {
	peerPort string
	via      netip.Addr
	mac      [6]byte
	missed   int // HELLO intervals since the last
}

// neighbours of a switch. They count HELLOs, and have no clock.
type neighbours map[neighbourKey]*neighbour

// heard takes a HELLO; fresh says that the sender was no live neighbour, or changed.
func (n neighbours) heard(d userstack.Datagram, h wire.Hello) (fresh bool) {
	key := neighbourKey{d.Port, h.Name}
	old := n[key]
	if old == nil && n.at(d.Port) >= maxNeighbours {
		return false
	}
	now := neighbour{peerPort: h.Port, via: d.From.Addr(), mac: d.MAC}
	fresh = old == nil || old.missed > silentTicks || now != neighbour{old.peerPort, old.via, old.mac, 0}
	n[key] = &now
	return fresh
}

func (n neighbours) at(port string) (count int) {
	for key := range n {
		if key.port == port {
			count++
		}
	}
	return count
}

// tick counts a HELLO interval.
func (n neighbours) tick() {
	for key, nb := range n {
		if nb.missed++; nb.missed > forgetTicks {
			delete(n, key)
		}
	}
}

// links are what the controller is told. Links between switches of our own are found in another way.
func (n neighbours) links(of controller.Switch, own func(name string) bool) (links []controller.Link) {
	for _, key := range slices.SortedFunc(maps.Keys(n), func(a, b neighbourKey) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.peer, b.peer))
	}) {
		if own(key.peer) {
			continue
		}
		nb := n[key]
		l := controller.Link{Router: of.Name, Port: key.port, Peer: key.peer, PeerPort: nb.peerPort, Via: nb.via, MAC: nb.mac, Up: true, Cost: 1}
		if nb.missed > silentTicks {
			l.Up, l.Reason = false, "hello"
		}
		if !wasUp(of, key.port) {
			l.Up, l.Reason = false, "carrier"
		}
		links = append(links, l)
	}
	return links
}

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
		if m.Name == "" || m.Name == s.name {
			return
		}
		if s.neighbours.heard(d, m) && !j.own(m.Name) {
			j.log.Info("neighbour", "switch", s.name, "port", d.Port, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
			j.greet(s, d.Port)
			j.tell(s)
		}
	}
}

// own says whether a switch of that name is ours.
func (j *join) own(name string) bool { return j.switches[name] != nil }

// greet sends HELLO to a port.
func (j *join) greet(s *joined, port string) {
	h := wire.Hello{Service: s.is.Service, Relay: true, RelayPort: j.relay, Name: s.name, Port: port}
	if s.is.Locator.IsValid() {
		h.Locator = sid.LocatorOf(s.is.Locator)
	}
	j.toAll(s, port, h)
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
	now := s.neighbours.links(s.is, j.own)
	if slices.Equal(now, s.told) {
		return
	}
	if err := j.net.SetLinks(s.name, now); err != nil {
		j.log.Warn("links not told", "switch", s.name, "error", err)
		return
	}
	s.told = now
}

func (j *join) tellAll() {
	for _, s := range j.switches {
		j.tell(s)
	}
}
