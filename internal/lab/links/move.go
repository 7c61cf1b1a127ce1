package links

import (
	"context"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// move takes a host from one router to another: its link to the one is unplugged, that to the other
// plugged in after the gap. With First both are there for the gap, counted from the moment that the
// host has an address at the new place.
func (l *Links) move(ctx context.Context, n *plan.Node, a file.Action) error {
	out := file.Action{Verb: "unplug", Node: a.Node, Peer: a.Peer}
	in := file.Action{Verb: "heal", Node: a.Node, Peer: a.To}
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
	if err := l.Attached(ctx, n, a.To); err != nil {
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
