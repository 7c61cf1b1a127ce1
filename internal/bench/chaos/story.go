package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/bench"
)

// storyTime bounds one question: a busy machine takes its time.
const storyTime = 5 * time.Second

// maxStories is how many flows of a batch are told of.
const maxStories = 3

// stories are what both hosts know of odd flows.
func (s *stage) stories(ctx context.Context, odd []Odd) (all []string) {
	for _, o := range odd {
		if o.Flow == nil || o.Flow.Client() == nil || len(all) == maxStories {
			continue
		}
		all = append(all, o.say()+s.bothSides(ctx, o.Flow))
	}
	return all
}

// bothSides asks the client's host, and all servers for what they have of the client's port.
func (s *stage) bothSides(ctx context.Context, f *bench.Flow) string {
	c := f.Client()
	text := s.story(ctx, c.Node, c.Local)
	client, err := netip.ParseAddrPort(c.Local)
	if err != nil {
		return text
	}
	for _, server := range s.world.Servers {
		text += s.served(ctx, server, f.Proto, client.Port())
	}
	return text
}

// served are the stories of the flows of a client's port at a server.
func (s *stage) served(ctx context.Context, server, proto string, port uint16) (text string) {
	ctx, cancel := context.WithTimeout(ctx, storyTime)
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
		text += s.story(ctx, server, name)
	}
	return text
}

// story is a flow's biography at one host.
func (s *stage) story(ctx context.Context, node, name string) (text string) {
	text = "\n  " + node + ":"
	ctx, cancel := context.WithTimeout(ctx, storyTime)
	defer cancel()
	err := s.rig.AskHost(node, func(c apiv1connect.LocalClient) error {
		b, err := c.Biography(ctx, connect.NewRequest(&apiv1.BiographyRequest{Flow: name}))
		if err != nil {
			return err
		}
		f := b.Msg.Flow
		text += fmt.Sprintf(" %s, %s to %s by %s, stable %s, idle %d ms", f.GetState(), f.GetWireLocal(), f.GetWirePeer(), f.GetUplink(), f.GetStable(), f.GetIdleMs())
		for _, c := range b.Msg.Chapters {
			text += fmt.Sprintf("\n    %s %s: %s", time.Unix(0, c.UnixNs).Format("15:04:05.000"), c.Kind, c.Text)
		}
		return nil
	})
	if err != nil {
		text += " " + err.Error()
	}
	return text
}
