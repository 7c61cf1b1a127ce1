package links

import (
	"context"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// An Engine has the links that are emulated, and routers of its own.
type Engine interface {
	Disturb(ctx context.Context, c *plan.Link, verb string) error
	FailInterfaces(ctx context.Context, n *plan.Node, peer string, down bool) error
	Change(ctx context.Context, changes ...emud.Fault) error
	Links() (engine.Links, error)
}

// A Config is what links are made from.
type Config struct {
	Plan     *plan.Plan
	Engine   Engine
	Repatch  func(n *plan.Node, p *plan.Port, verb string) error             // tells a switch what happened to its port
	Attached func(ctx context.Context, host *plan.Node, router string) error // waits until a host has an address at a router
}

// Links are those of one lab.
type Links struct {
	Config
}

// New touches nothing.
func New(c Config) *Links { return &Links{c} }

// Do carries out an action that is about links, or a fault of a router.
func (l *Links) Do(ctx context.Context, a file.Action) error {
	n, down := l.Plan.Node(a.Node), a.Verb == "fail"
	switch {
	case a.Verb == "partition":
		return l.partition(ctx, a.Parts)
	case a.Verb == "unite":
		return l.unite(ctx)
	case a.Verb == "flap":
		return l.flap(ctx, a)
	case a.Verb == "move":
		return l.move(ctx, n, a)
	case a.NIC:
		return l.Engine.FailInterfaces(ctx, n, a.Peer, down)
	case (down || a.Verb == "repair") && a.Peer == "" && n.Kind.InEngine():
		return l.failRouter(ctx, n, down)
	}
	return l.disturb(ctx, n, a)
}

// disturb cuts, unplugs, removes or heals the links of a node, or those to one neighbour, at both ends. A link with
// an end in the engine is broken there, and its carrier at the other end.
func (l *Links) disturb(ctx context.Context, n *plan.Node, a file.Action) error {
	w := wires.New()
	defer w.Close()
	for _, near := range n.Ports {
		if a.Peer != "" && a.Peer != near.Far.Name {
			continue
		}
		if err := l.Engine.Disturb(ctx, near.Link, a.Verb); err != nil {
			return err
		}
		if a.Verb == "heal" {
			if err := w.Restore(near.Link); err != nil {
				return err
			}
		}
		for i, end := range near.Link.Nodes {
			if !end.Kind.IsNamespace() {
				continue
			}
			if err := w.Disturb(a.Verb, end.Netns, near.Link.Ports[i]); err != nil {
				return err
			}
			if err := l.Repatch(end, near.Link.Ports[i], a.Verb); err != nil {
				return err
			}
		}
	}
	return nil
}
