package lab

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// maxGap bounds the gap of a move.
const maxGap = time.Hour

// attachTime bounds how long a host may take to attach to the router it was just plugged into.
const attachTime = 20 * time.Second

// parseMove reads "h r1 r2", "h r1 r2 gap 300ms" and "h r1 r2 gap 300ms first".
func (a *Action) parseMove(words []string) bool {
	if len(words) < 3 {
		return false
	}
	a.Node, a.Peer, a.To = words[0], words[1], words[2]
	words = words[3:]
	if len(words) >= 2 && words[0] == "gap" {
		gap, err := time.ParseDuration(words[1])
		if err != nil || gap < 0 || gap > maxGap {
			return false
		}
		a.Gap, words = gap, words[2:]
	}
	if len(words) == 1 && words[0] == "first" {
		a.First, words = true, nil
	}
	return len(words) == 0
}

func (a Action) moveString() string {
	text := "move " + a.Node + " " + a.Peer + " " + a.To
	if a.Gap > 0 {
		text += " gap " + a.Gap.String()
	}
	if a.First {
		text += " first"
	}
	return text
}

func (f *File) checkMove(a Action, n *Node) error {
	switch {
	case n.Kind != Host:
		return fmt.Errorf("%q: %q is a %s; expected a host", a, a.Node, n.Kind)
	case a.Peer == a.To:
		return fmt.Errorf("%q: from %q to the same node", a, a.Peer)
	}
	for _, far := range []string{a.Peer, a.To} {
		if len(f.linksBetween(a.Node, far)) == 0 {
			return fmt.Errorf("%q: no link between %q and %q; a link with unplugged: true waits for a move", a, a.Node, far)
		}
	}
	return nil
}

// move takes a host from one router to another: its link to the one is unplugged, that to the other
// plugged in after the gap. With First both are there for the gap, counted from the moment that the
// host has an address at the new place.
func (l *Lab) move(ctx context.Context, n *PlanNode, a Action) error {
	out := Action{Verb: "unplug", Node: a.Node, Peer: a.Peer}
	in := Action{Verb: "heal", Node: a.Node, Peer: a.To}
	if !a.First {
		if err := l.disturb(ctx, n, out); err != nil {
			return err
		}
		if err := pause(ctx, a.Gap); err != nil {
			return err
		}
		return l.disturb(ctx, n, in)
	}
	if err := l.disturb(ctx, n, in); err != nil {
		return err
	}
	if err := l.attached(ctx, n, a.To); err != nil {
		return err
	}
	if err := pause(ctx, a.Gap); err != nil {
		return err
	}
	return l.disturb(ctx, n, out)
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// attached waits until the host has a locator on a link to the node.
func (l *Lab) attached(ctx context.Context, n *PlanNode, to string) error {
	if l.opt.stub != nil || l.File.bare {
		return nil
	}
	client, base, err := api.Dial("unix:" + l.Socket(n.Name))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	local := apiv1connect.NewLocalClient(client, base)
	ctx, cancel := context.WithTimeoutCause(ctx, attachTime, fmt.Errorf("not attached in %v", attachTime))
	defer cancel()
	return poll(ctx, func() error {
		s, err := local.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return fmt.Errorf("%s (host) does not answer: %w", n.Name, err)
		}
		for _, u := range s.Msg.Uplinks {
			if p := n.port(u.Interface); p != nil && p.Far.Name == to && u.Up && u.Locator != "" {
				return nil
			}
		}
		return fmt.Errorf("%s has no address at %s: %v", n.Name, to, s.Msg.Uplinks)
	})
}
