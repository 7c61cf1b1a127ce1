package routerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var allNodes = net.ParseIP("ff02::1")

// openLinks opens the protocol's port on all interfaces; the control message of each datagram says
// which one it came by.
func openLinks() (*ipv6.PacketConn, error) {
	// The host of this machine takes the port for its uplink; programs of other users never share it so.
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if fail := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); fail != nil {
			return fail
		}
		return err
	}}
	c, err := shared.ListenPacket(context.Background(), "udp6", fmt.Sprintf("[::]:%d", sid.Port))
	if err != nil {
		return nil, fmt.Errorf("open the port of Scaffold's messages: %w (is another routerd running here?)", err)
	}
	p := ipv6.NewPacketConn(c)
	if err := errors.Join(p.SetControlMessage(ipv6.FlagInterface, true), p.SetMulticastLoopback(false), p.SetMulticastHopLimit(255)); err != nil {
		c.Close()
		return nil, fmt.Errorf("the socket of Scaffold's messages: %w", err)
	}
	return p, nil
}

// configured are the neighbours that the configuration names.
func configured(name string, keys *agent.LinkKeys, links []Link) *agent.Neighbours {
	n := agent.NewNeighbours(name, keys)
	for _, l := range links {
		n.Configure(l.Port, l.Peer, l.Via)
	}
	return n
}

// hear posts messages until the socket is closed.
func (d *daemon) hear() {
	buf := make([]byte, wire.MaxLen+1)
	var said netip.Addr // whose other version was told last
	for {
		n, cm, from, err := d.links.ReadFrom(buf)
		if err != nil {
			if d.ctx.Err() == nil {
				d.fail(fmt.Errorf("receive on the links: %w", err))
			}
			return
		}
		m, err := wire.Parse(buf[:n])
		src, ok := netip.AddrFromSlice(from.(*net.UDPAddr).IP)
		if errors.Is(err, wire.ErrVersion) && src != said {
			said = src
			d.log.Warn("a neighbour is not understood: upgrade the older of the two", "from", from, "error", err)
		}
		if err != nil || !ok || cm == nil {
			d.log.Debug("message not understood", "from", from, "error", err)
			continue
		}
		d.post(func() { d.message(cm.IfIndex, src, m) })
	}
}

func (d *daemon) message(ifindex int, from netip.Addr, m wire.Message) {
	p := d.ports[ifindex]
	if p == nil {
		return // not one of ours, the management network's
	}
	at := agent.Origin{Port: p.name, From: from}
	switch m := m.(type) {
	case wire.Solicit:
		d.greet(p.name)
	case wire.Hello:
		if m.Name == d.cfg.Name {
			d.log.Warn("another router has our name, or the link is a loop", "port", p.name, "from", from)
			return
		}
		fresh, key, answer := d.neighbours.Heard(at, m)
		d.heard(p, from, key, fresh, answer)
		if fresh {
			d.log.Info("neighbour", "port", p.name, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
			d.greet(p.name)
		}
	case wire.Link:
		fresh, key, answer := d.neighbours.Proved(at, m)
		d.heard(p, from, key, fresh, answer)
		if fresh {
			d.log.Info("neighbour, proved", "port", p.name, "peer", m.Name, "peer_port", m.Port, "locator", m.Locator)
		}
	}
}

// heard does what follows from a message of a neighbour.
func (d *daemon) heard(p *port, from netip.Addr, key agent.NeighbourKey, fresh, answer bool) {
	if answer {
		d.prove(p, key, from)
	}
	if fresh {
		d.pinLinks()
		d.tellNeighbours()
	}
}

// greet sends HELLO to the link, or to the far end of a configured one.
func (d *daemon) greet(portName string) {
	p := d.portNamed(portName)
	if p == nil || !p.up {
		return
	}
	h := wire.Hello{Service: d.cfg.Service, Locator: d.locator, Name: d.cfg.Name, Port: p.name}
	if d.relay != nil {
		h.Relay, h.RelayPort = true, d.relay.Port()
	}
	b := h.Append(nil)
	if p.delivered() {
		d.sendTo(p, allNodes, b)
	}
	for _, a := range d.farEnds(p.name) {
		d.sendTo(p, a.AsSlice(), b)
	}
}

// solicit asks for the HELLOs of the routers on the link.
func (d *daemon) solicit(portName string) {
	if p := d.portNamed(portName); p != nil && p.up {
		d.sendTo(p, allNodes, wire.Solicit{Name: d.cfg.Name}.Append(nil))
	}
}

// sendTo fails while the port's address is tentative; the next HELLO is due in a second.
func (d *daemon) sendTo(p *port, to net.IP, b []byte) {
	dst, cm := &net.UDPAddr{IP: to, Port: sid.Port}, &ipv6.ControlMessage{}
	if to.IsMulticast() {
		cm.IfIndex = p.ifindex
	} else if d.locator != 0 {
		cm.Src = net.IP(d.locator.Host().AsSlice())
	}
	if _, err := d.links.WriteTo(b, cm, dst); err != nil {
		d.log.Debug("HELLO not sent", "port", p.name, "to", to, "error", err)
	}
}

// farEnds are the addresses where the peers of configured links on the port may be. Until a peer was
// heard any router that is routed by the link may be it.
func (d *daemon) farEnds(port string) (to []netip.Addr) {
	if d.locator == 0 {
		return nil
	}
	for key, nb := range d.neighbours.All() {
		switch {
		case key.Port != port || !nb.Configured:
		case nb.Locator != 0:
			to = append(to, nb.Locator.Host())
		default:
			to = append(to, d.routedBy(port, nb.Via)...)
		}
	}
	return to
}

// routedBy lists the routers whose blocks go by that next hop.
func (d *daemon) routedBy(port string, via netip.Addr) (to []netip.Addr) {
	for key, r := range d.routes.want {
		if !key.unreachable && key.prefix.Bits() == plan.BlockBits && r.port == port && r.via == via {
			to = append(to, sid.LocatorOf(key.prefix.Addr()).Host())
		}
	}
	return to
}

// pinLinks routes the addresses of far ends by their own link, so that a HELLO that arrives tells of
// that link and of no detour.
func (d *daemon) pinLinks() {
	for key, nb := range d.neighbours.All() {
		if !nb.Configured || nb.Locator == 0 {
			continue
		}
		host := routeKey{prefix: netip.PrefixFrom(nb.Locator.Host(), 128)}
		if err := d.routes.set(host, route{via: nb.Via, port: key.Port}); err != nil {
			d.log.Error("route to the far end of a link", "peer", key.Peer, "error", err)
		}
	}
}

// tellNeighbours reports the links where they changed.
func (d *daemon) tellNeighbours() {
	d.portsChanged()
	now := d.neighbours.Report(func(port string) bool { p := d.portNamed(port); return p != nil && p.up })
	if d.session == nil || proto.Equal(now, d.told) {
		return
	}
	d.told = now
	d.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: now}})
}
