package steer

import (
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/packet/header"
)

// A leg is a connection of an end host, whose packets a switch rewrites: the flows 1 and 2 of the thesis' tables, or 8 and 7. They
// come before all other rules of boost, and what was rewritten goes on as if there were none.
//
//	priority 5  host to other    to the agent's address and port
//	priority 5  agent to host    from the other's
type leg struct{ host, other, agent netip.AddrPort }

// A legKey is what a switch has one leg of.
type legKey struct{ host, other netip.AddrPort }

func (l leg) key() legKey { return legKey{l.host, l.other} }

const priorityLeg = 5

// idle is how long the rules of a leg stay that nothing comes by. Agents have the kernel look for their end hosts each 10 s when
// nothing is said (internal/boost/ends); where a host's window is closed it looks ever more seldom, each 120 s in the end
// (TCP_RTO_MAX). So this is of connections whose agents are gone.
const idle = 5 * time.Minute

func readLeg(m *apiv1.SteerLeg) (l leg, err error) {
	for _, of := range []struct {
		text string
		to   *netip.AddrPort
	}{{m.Host, &l.host}, {m.Other, &l.other}, {m.Agent, &l.agent}} {
		if *of.to, err = netip.ParseAddrPort(of.text); err != nil {
			return l, err
		}
	}
	if l.host.Addr().Is4() != l.other.Addr().Is4() || l.host.Addr().Is4() != l.agent.Addr().Is4() {
		return l, fmt.Errorf("a leg of %v, %v and %v: they are of two families of addresses", l.host, l.other, l.agent)
	}
	return l, nil
}

func (l leg) message() *apiv1.SteerLeg {
	return &apiv1.SteerLeg{Host: l.host.String(), Other: l.other.String(), Agent: l.agent.String()}
}

// toAgent are the actions that make a packet of the host's one to the agent.
func (l leg) toAgent() []controller.Action {
	return []controller.Action{
		controller.SetField{OXM: controller.Addr(addressField(l.agent.Addr(), false), l.agent.Addr())},
		controller.SetField{OXM: controller.Uint(controller.TCPDst, uint64(l.agent.Port()))},
		controller.SetField{OXM: seen},
	}
}

// toHost are those that make a packet of the agent's one of the other host.
func (l leg) toHost() []controller.Action {
	return []controller.Action{
		controller.SetField{OXM: controller.Addr(addressField(l.other.Addr(), true), l.other.Addr())},
		controller.SetField{OXM: controller.Uint(controller.TCPSrc, uint64(l.other.Port()))},
		controller.SetField{OXM: seen},
	}
}

// fromAgent is the place among a leg's flows of that for what its agent says.
const fromAgent = 1

func (l leg) flows() []controller.Flow {
	return []controller.Flow{legFlow(l.host, l.other, l.toAgent()), legFlow(l.agent, l.host, l.toHost())}
}

func legFlow(from, to netip.AddrPort, actions []controller.Action) controller.Flow {
	ether := uint64(header.EtherIPv6)
	if from.Addr().Is4() {
		ether = etherIPv4
	}
	return controller.Flow{
		Priority: priorityLeg, First: true, Idle: idle,
		Match: controller.Match{
			unseen, controller.Uint(controller.EthType, ether), controller.Uint(controller.IPProto, protoTCP),
			controller.Addr(addressField(from.Addr(), true), from.Addr()), controller.Addr(addressField(to.Addr(), false), to.Addr()),
			controller.Uint(controller.TCPSrc, uint64(from.Port())), controller.Uint(controller.TCPDst, uint64(to.Port())),
		},
		Instructions: controller.Apply(append(actions, controller.Resubmit{Table: 0})...),
	}
}

// addressField is that of the source's address, or of the destination's.
func addressField(a netip.Addr, source bool) controller.Field {
	switch {
	case a.Is4() && source:
		return controller.IPv4Src
	case a.Is4():
		return controller.IPv4Dst
	case source:
		return controller.IPv6Src
	}
	return controller.IPv6Dst
}

// Of the flags of a segment those that say how it begins a connection, whatever it says of congestion.
const (
	flagSYN    = 0x02
	flagACK    = 0x10
	flagsBegin = 0x17 // FIN, SYN, RST, ACK
)

// lease is how long what begins a connection is lost when it is punted to nobody. Who has sent it does so again after 1, 3 and 7 s.
const lease = 3 * time.Second

// puntOf has a switch punt segments. It goes by itself where no controller is there any more.
func puntOf(at string, p *apiv1.SteerPunt) (controller.Subscription, error) {
	s := controller.Subscription{Name: puntName(p), Switch: at, First: true, Lease: lease}
	source, err := netip.ParsePrefix(p.Source)
	if err != nil {
		return s, err
	}
	destination, err := netip.ParsePrefix(p.Destination)
	if err != nil {
		return s, err
	}
	if source.Addr().Is4() != destination.Addr().Is4() {
		return s, fmt.Errorf("from %v to %v: they are of two families of addresses", source, destination)
	}
	ether, flags := uint64(header.EtherIPv6), uint64(flagSYN)
	if source.Addr().Is4() {
		ether = etherIPv4
	}
	if p.Answer {
		flags |= flagACK
	}
	s.Match = controller.Match{
		unseen, controller.Uint(controller.EthType, ether), controller.Uint(controller.IPProto, protoTCP),
		controller.Prefix(addressField(source.Addr(), true), source), controller.Prefix(addressField(destination.Addr(), false), destination),
		controller.UintMasked(controller.TCPFlags, flags, flagsBegin),
	}
	s.Match = append(s.Match, portsOf(controller.TCPSrc, p.SourcePort, maskOf(p.SourcePort))...)
	s.Match = append(s.Match, portsOf(controller.TCPDst, p.DestinationPort, maskOf(p.DestinationPort))...)
	return s, nil
}

func maskOf(port uint32) uint32 {
	if port == 0 {
		return 0
	}
	return 0xffff
}

func puntName(p *apiv1.SteerPunt) string {
	return fmt.Sprintf("%s %d %s %d %v %v", p.Source, p.SourcePort, p.Destination, p.DestinationPort, p.Answer, p.Waits)
}
