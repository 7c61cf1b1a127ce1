package steer

import (
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/packet/header"
)

// The rules of a switch, all in table 0 and before Scaffold's own:
//
//	priority 4  in_port=AGENT, TCP             what an agent sends goes on as if there were no rules of boost
//	priority 3  one connection                 pinned: to its agent
//	priority 2  clients to servers, by slot    to the lane's near agent
//	priority 1  servers to clients, by slot    to its far agent
//
// To an agent means: its MAC is written into the frame, and no more is changed. All but the first ask for a register's bit
// to be 0; the first sets it, and has the packet looked up again. So what an agent forwards is not sent back to it, whatever
// else is in the table.
const (
	priorityExempt  = 4
	priorityHighest = 3
)

// exempt is the register's bit, and seen and unseen what it is of packets that come from an agent, and of others.
const (
	register  = controller.GuardRegister
	exemptBit = 1
)

var (
	unseen = controller.UintMasked(controller.Reg(register), 0, exemptBit)
	seen   = controller.UintMasked(controller.Reg(register), exemptBit, exemptBit)
)

const (
	etherIPv4 = 0x0800
	protoTCP  = 6
)

// flowsOf are the flows of a switch; whole says that it has the ports of all of them. Those of the others are left out until
// it has.
func flowsOf(told *apiv1.SteerRules, at controller.Switch) (flows []controller.Flow, whole bool, err error) {
	whole = true
	ports := map[string]controller.PortNumber{}
	for _, p := range at.Ports {
		ports[p.Name] = p.Number
	}
	for _, name := range told.Exempt {
		port, is := ports[name]
		if !is {
			whole = false
			continue
		}
		for _, ether := range []uint64{etherIPv4, header.EtherIPv6} {
			flows = append(flows, controller.Flow{
				Priority: priorityExempt, First: true,
				Match: controller.Match{unseen, controller.Uint(controller.InPort, uint64(port)),
					controller.Uint(controller.EthType, ether), controller.Uint(controller.IPProto, protoTCP)},
				Instructions: controller.Apply(controller.SetField{OXM: seen}, controller.Resubmit{Table: 0}),
			})
		}
	}
	for _, r := range told.Rules {
		port, is := ports[r.Port]
		if !is {
			whole = false
			continue
		}
		f, err := flowOf(r, port)
		if err != nil {
			return nil, false, err
		}
		flows = append(flows, f)
	}
	return flows, whole, nil
}

func flowOf(r *apiv1.SteerRule, port controller.PortNumber) (f controller.Flow, err error) {
	source, err := netip.ParsePrefix(r.Source)
	if err != nil {
		return f, err
	}
	destination, err := netip.ParsePrefix(r.Destination)
	if err != nil {
		return f, err
	}
	if len(r.Mac) != 6 || r.Kind < apiv1.SteerKind_STEER_KIND_ANSWERS || r.Kind > priorityHighest || source.Addr().Is4() != destination.Addr().Is4() {
		return f, fmt.Errorf("a rule from %v to %v of kind %v, to the address %x: it is none", source, destination, r.Kind, r.Mac)
	}
	match := controller.Match{unseen}
	if source.Addr().Is4() {
		match = append(match, controller.Uint(controller.EthType, etherIPv4),
			controller.Uint(controller.IPProto, protoTCP),
			controller.Prefix(controller.IPv4Src, source), controller.Prefix(controller.IPv4Dst, destination))
	} else {
		match = append(match, controller.Uint(controller.EthType, header.EtherIPv6),
			controller.Uint(controller.IPProto, protoTCP),
			controller.Prefix(controller.IPv6Src, source), controller.Prefix(controller.IPv6Dst, destination))
	}
	match = append(match, portsOf(controller.TCPSrc, r.SourcePort, r.SourceMask)...)
	match = append(match, portsOf(controller.TCPDst, r.DestinationPort, r.DestinationMask)...)
	return controller.Flow{
		Priority: uint16(r.Kind), First: true, Match: match,
		Instructions: controller.Apply(controller.SetField{OXM: controller.HW(controller.EthDst, controller.MAC(r.Mac))}, controller.Output{Port: port}),
	}, nil
}

// portsOf match a port as far as the mask says.
func portsOf(f controller.Field, value, mask uint32) controller.Match {
	switch mask {
	case 0:
		return nil
	case 0xffff:
		return controller.Match{controller.Uint(f, uint64(value))}
	}
	return controller.Match{controller.UintMasked(f, uint64(value), uint64(mask))}
}
