package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/bench"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// historyTime bounds one question: a busy machine takes its time.
const historyTime = 5 * time.Second

// maxHistories is how many flows of a batch are told of.
const maxHistories = 3

// histories are what both hosts know of odd flows.
func (s *stage) histories(ctx context.Context, odd []Odd) (all []string) {
	for _, o := range odd {
		if o.Flow == nil || o.Flow.Client() == nil || len(all) == maxHistories {
			continue
		}
		all = append(all, o.say()+s.bothSides(ctx, o.Flow))
	}
	return all
}

// bothSides asks the client's host, and all servers for what they have of the client's port.
func (s *stage) bothSides(ctx context.Context, f *bench.Flow) string {
	c := f.Client()
	text := s.history(ctx, c.Node, c.Local)
	client, err := netip.ParseAddrPort(c.Local)
	if err != nil {
		return text
	}
	for _, server := range s.world.Servers {
		text += s.served(ctx, server, f.Proto, client.Port())
	}
	return text
}

// served are the histories of the flows of a client's port at a server.
func (s *stage) served(ctx context.Context, server, proto string, port uint16) (text string) {
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	var names []string
	err := s.rig.AskHost(server, func(c apiv1connect.LocalClient) error {
		r, err := c.ListFlows(ctx, connect.NewRequest(&apiv1.ListFlowsRequest{}))
		if err != nil {
			return err
		}
		for _, f := range r.Msg.Flows {
			peer, _ := netip.ParseAddrPort(f.Peer)
			if f.Role == "server" && f.Proto == proto && peer.Port() == port {
				names = append(names, f.Stable)
			}
		}
		return nil
	})
	if err != nil {
		return "\n  " + err.Error()
	}
	for _, name := range names {
		text += s.history(ctx, server, name)
	}
	return text
}

// history is what one host tells of a flow.
func (s *stage) history(ctx context.Context, node, name string) (text string) {
	text = "\n  " + node + ":"
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	err := s.rig.AskHost(node, func(c apiv1connect.LocalClient) error {
		b, err := c.GetFlowHistory(ctx, connect.NewRequest(&apiv1.GetFlowHistoryRequest{Flow: name}))
		if err != nil {
			return err
		}
		f := b.Msg.Flow
		text += fmt.Sprintf(" %s, %s to %s by %s, stable %s, idle %d ms", f.GetState(), f.GetWireLocal(), f.GetWirePeer(), f.GetUplink(), f.GetStable(), f.GetIdleMs())
		for _, c := range b.Msg.Events {
			text += fmt.Sprintf("\n    %s %s: %s", time.Unix(0, c.UnixNs).Format("15:04:05.000"), c.Kind, c.Text)
		}
		return nil
	})
	if err != nil {
		text += " " + err.Error()
	}
	return text
}
