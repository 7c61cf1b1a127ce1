package switchd

import (
	"context"
	"math"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofctl"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
)

// collect asks a switch and gives take each part of the answer.
func collect[P ofp.Part](ctx context.Context, p plane, at string, question ofp.Ask, take func(P)) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return p.ask(ctx, at, func(c *ofconn.Conn) error {
		parts, err := c.Collect(ctx, question)
		for _, part := range parts {
			if x, is := part.(P); is {
				take(x)
			}
		}
		return err
	})
}

// ports are those of a switch with what they have counted, where it answers.
func (d *answerer) ports(ctx context.Context, c condition, s *apiv1.Switch) error {
	byNumber := make(map[ofp.Port]*apiv1.SwitchPort, len(c.Ports))
	for _, p := range c.Ports {
		x := &apiv1.SwitchPort{Name: p.Name, Number: uint32(p.Number), Mac: controller.MAC(p.MAC).String(), Up: p.Up}
		byNumber[p.Number] = x
		s.Ports = append(s.Ports, x)
	}
	if !c.Up {
		return nil
	}
	return collect(ctx, d.plane, c.Name, ofp.AskPortStats{}, func(list ofp.PortsStats) {
		for _, n := range list {
			if x := byNumber[n.Port]; x != nil {
				x.RxPackets, x.TxPackets = orNone(n.RxPackets), orNone(n.TxPackets)
				x.RxBytes, x.TxBytes = orNone(n.RxBytes), orNone(n.TxBytes)
				x.RxDropped, x.TxDropped = orNone(n.RxDropped), orNone(n.TxDropped)
				x.RxErrors, x.TxErrors = orNone(n.RxErrors), orNone(n.TxErrors)
			}
		}
	})
}

// orNone is 0 for what the switch does not count.
func orNone(n uint64) uint64 {
	if n == math.MaxUint64 {
		return 0
	}
	return n
}

// flowsOf reads what is in a switch's tables, and adds what an operator wants there and is not told.
func (d *answerer) flowsOf(ctx context.Context, c condition) (all []*apiv1.SwitchFlow, err error) {
	ports := portsOf(c.Switch)
	err = collect(ctx, d.plane, c.Name, ofp.AskFlows{FlowFilter: ofp.FlowFilter{Table: ofp.AllTables}}, func(list ofp.Flows) {
		for _, f := range list {
			x := &apiv1.SwitchFlow{
				Table: uint32(f.Table), Priority: uint32(f.Priority), Cookie: f.Cookie, Match: ofctl.Match(f.Match, ports),
				Actions: ofctl.Instructions(f.Instructions, ports), Packets: f.Stats.Packets, Bytes: f.Stats.Bytes,
				AgeMs: f.Stats.Duration.Duration().Milliseconds(),
			}
			x.Owner, x.Number = d.ownerOf(f.Cookie)
			all = append(all, x)
		}
	})
	for _, f := range d.operators.list(c.Name) {
		if f.trouble != "" {
			all = append(all, &apiv1.SwitchFlow{Priority: uint32(f.priority), Match: f.match, Actions: f.actions, Owner: "operator", Number: f.number, Trouble: f.trouble})
		}
	}
	return all, err
}

// has asks whether a switch has an operator's flow.
func (d *answerer) has(ctx context.Context, f keptFlow) (has bool, err error) {
	cookie, _ := oftables.Cookies()
	cookie |= uint64(ownOperator)<<32 | uint64(f.number)
	filter := ofp.FlowFilter{Table: ofp.AllTables, Cookie: cookie, CookieMask: math.MaxUint64}
	err = collect(ctx, d.plane, f.at, ofp.AskFlows{FlowFilter: filter}, func(list ofp.Flows) { has = has || len(list) > 0 })
	return has, err
}
