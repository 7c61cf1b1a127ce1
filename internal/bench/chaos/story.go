package chaos

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/bench"
)

// maxStories is how many flows of a batch are told of.
const maxStories = 3

// stories are what both hosts know of odd flows.
func (s *stage) stories(ctx context.Context, odd []Odd) (all []string) {
	for _, o := range odd {
		if o.Flow == nil || o.Flow.Client() == nil || len(all) == maxStories {
			continue
		}
		text := o.say()
		for _, e := range []*bench.End{o.Flow.Client(), o.Flow.Server()} {
			if e != nil {
				text += s.story(ctx, e)
			}
		}
		all = append(all, text)
	}
	return all
}

func (s *stage) story(ctx context.Context, e *bench.End) string {
	text := fmt.Sprintf("\n  %s, where it is %s to %s (got %d, sent %d, ended %v %q):", e.Node, e.Local, e.Peer, e.Received, e.Sent, e.Ended, e.Err)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	name := e.Local
	if !e.Client {
		name = e.Peer
	}
	err := s.rig.AskHost(e.Node, func(c apiv1connect.LocalClient) error {
		b, err := c.Biography(ctx, connect.NewRequest(&apiv1.BiographyRequest{Flow: name}))
		if err != nil {
			return err
		}
		f := b.Msg.Flow
		text += fmt.Sprintf(" %s, %s to %s by %s, idle %d ms", f.GetState(), f.GetWireLocal(), f.GetWirePeer(), f.GetUplink(), f.GetIdleMs())
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
