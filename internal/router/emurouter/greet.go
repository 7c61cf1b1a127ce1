package emurouter

import (
	"math/rand/v2"
	"net/netip"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/openflow/userstack"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// outMost is how many frames of the router's own may wait for the engine.
const outMost = 4096

// An outgoing frame is one of the router's own stack.
type outgoing struct {
	port  string
	frame []byte
}

// dynamic is the first of the TCP ports that are for anything.
const dynamic = 49152

// open makes the router's own stack: TCP for the relay, and messages on links.
func (c *control) open() (err error) {
	c.stack, err = userstack.New(userstack.Config{MAC: c.mac(), LinkLocal: c.cfg.LinkLocal, Output: c.output})
	if err != nil {
		return err
	}
	c.stack.HandleUDP(sid.Port, c.datagram)
	for _, p := range c.cfg.Ports {
		if err := c.stack.AddPort(p.Name, uint32(p.MTU)); err != nil {
			c.stack.Close()
			return err
		}
	}
	// Another port in each process: hosts see by it that their connections went with the one before.
	c.relayPort = uint16(dynamic + rand.IntN(1<<16-dynamic))
	listener, err := c.stack.ListenTCP(c.relayPort)
	if err != nil {
		c.stack.Close()
		return err
	}
	c.relay = agent.NewRelay(listener.Accept, agent.RelayTo(c.controllers, c.cfg.dial), c.log)
	go c.flush()
	return nil
}

func (c *control) close() {
	c.stack.Close()
	c.relay.Wait()
}

// mac is the router's hardware address on its links, given locally.
func (c *control) mac() (mac [6]byte) {
	b := c.cfg.LinkLocal.As16()
	copy(mac[:], []byte{0x02, 0x5e})
	copy(mac[2:], b[12:])
	return mac
}

// output takes a frame of the stack's; too many are lost, as on a link.
func (c *control) output(port string, frame []byte) {
	select {
	case c.out <- outgoing{port, frame}:
	default:
	}
}

// flush sends what the stack has to say, all that waits at once.
func (c *control) flush() {
	for {
		var all []outgoing
		select {
		case one := <-c.out:
			all = append(all, one)
		case <-c.ctx.Done():
			return
		}
		for range len(c.out) {
			all = append(all, <-c.out)
		}
		c.do(func() {
			for _, one := range all {
				c.emit(one)
			}
		})
	}
}

// emit sends a frame out of a port, on the engine's thread.
func (c *control) emit(one outgoing) {
	port := c.cfg.port(one.port)
	if port < 0 || port >= len(c.router.Ports()) {
		return
	}
	if p, ok := c.router.NewFrame(one.frame); ok {
		c.router.Send(p, uint16(port))
	}
}

// port is the number of a port, -1 for none.
func (c *Config) port(name string) int {
	for i, p := range c.Ports {
		if p.Name == name {
			return i
		}
	}
	return -1
}

// datagram takes a message from a link; the stack calls it in the loop.
func (c *control) datagram(d userstack.Datagram) {
	m, err := wire.Parse(d.Data)
	if err != nil || !d.From.Addr().IsLinkLocalUnicast() {
		c.log.Debug("message not understood", "port", d.Port, "from", d.From, "error", err)
		return
	}
	switch m := m.(type) {
	case wire.Solicit:
		c.greet(d.Port)
	case wire.Hello:
		c.hello(d, m)
	case wire.Link:
		fresh, key, answer := c.neighbours.Proved(origin(d), m)
		c.heard(d.Port, key, fresh, answer)
		if fresh {
			c.log.Info("neighbour, proved", "port", d.Port, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
		}
	}
}

func origin(d userstack.Datagram) agent.Origin {
	return agent.Origin{Port: d.Port, From: d.From.Addr(), MAC: d.MAC}
}

func (c *control) hello(d userstack.Datagram, m wire.Hello) {
	if m.Name == c.cfg.Name {
		c.log.Warn("another router has our name, or the link is a loop", "port", d.Port, "from", d.From)
		return
	}
	fresh, key, answer := c.neighbours.Heard(origin(d), m)
	c.heard(d.Port, key, fresh, answer)
	if fresh {
		c.log.Info("neighbour", "port", d.Port, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
		c.greet(d.Port)
	}
}

// heard does what follows from a message of a neighbour.
func (c *control) heard(port string, key agent.NeighbourKey, fresh, answer bool) {
	if answer {
		c.toAll(port, c.neighbours.Link(key, c.cfg.LinkLocal, c.locator))
	}
	if fresh {
		c.tellNeighbours()
	}
}

// listed takes up who is in the network.
func (c *control) listed(m *apiv1.RouterKeys) {
	news := c.keys.Take(m)
	c.neighbours.Listed()
	if !news {
		return
	}
	for port, up := range c.up { // who has another key is asked to prove himself, and who is new hears of us
		if up {
			c.greet(port)
		}
	}
	c.proveAll()
	c.tellNeighbours()
}

// proveAll sends LINK to all neighbours.
func (c *control) proveAll() {
	for port, up := range c.up {
		for _, key := range c.neighbours.Due(port) {
			if up {
				c.toAll(port, c.neighbours.Link(key, c.cfg.LinkLocal, c.locator))
			}
		}
	}
}

// greet sends HELLO to a port.
func (c *control) greet(port string) {
	c.toAll(port, wire.Hello{Service: c.cfg.Service, Relay: true, RelayPort: c.relayPort, Locator: c.locator, Name: c.cfg.Name, Port: port})
}

func (c *control) toAll(port string, m wire.Message) {
	to := netip.AddrPortFrom(netip.IPv6LinkLocalAllNodes(), sid.Port)
	if err := c.stack.SendUDP(port, sid.Port, to, m.Append(nil)); err != nil {
		c.log.Warn("message not sent", "port", port, "type", m.Type(), "error", err)
	}
}

// carrier tells all who go by a port's state.
func (c *control) carrier(port string, up bool) {
	if c.up[port] != up {
		c.log.Info("port", "name", port, "up", up)
	}
	c.up[port] = up
	if up {
		c.greet(port)
		c.toAll(port, wire.Solicit{Name: c.cfg.Name})
	} else {
		c.neighbours.Unplugged(port)
	}
	c.tellNeighbours()
}

// tellNeighbours reports the links where they changed.
func (c *control) tellNeighbours() {
	c.watchLeads()
	now := c.neighbours.Report(func(port string) bool { return c.up[port] })
	if c.session == nil || proto.Equal(now, c.told) {
		return
	}
	c.told = now
	c.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: now}})
}
