package links

import (
	"context"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// failRouter stops a router inside the engine. Its neighbours outside lose their carrier.
func (l *Links) failRouter(ctx context.Context, n *plan.Node, down bool) error {
	if err := l.Engine.Change(ctx, emud.Fault{Router: n.Name, Down: down}); err != nil {
		return err
	}
	return l.carriers(n, down)
}

// carriers takes down all interfaces at the links of a node, or sets them up again.
func (l *Links) carriers(n *plan.Node, down bool) error {
	w := wires.New()
	defer w.Close()
	verb := "repair"
	if down {
		verb = "fail"
	}
	for _, p := range n.Ports {
		for i, end := range p.Link.Nodes {
			if !end.Kind.IsNamespace() {
				continue
			}
			if err := w.Disturb(verb, end.Netns, p.Link.Ports[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// partition cuts all links between the parts. Nodes that belong to none go with the nearest.
func (l *Links) partition(ctx context.Context, parts [][]string) error {
	of := l.Plan.Parts(parts)
	var changes []emud.Fault
	w := wires.New()
	defer w.Close()
	for _, c := range l.Plan.Cable {
		if of[c.Nodes[0]] == of[c.Nodes[1]] {
			continue
		}
		if number := l.Plan.EmulatedNumber(c); number >= 0 {
			changes = append(changes, emud.Fault{Link: &number, Cause: emud.CausePartition, Down: true})
			continue
		}
		for i, n := range c.Nodes {
			if err := w.Cut(n.Netns, c.Ports[i].Dev); err != nil {
				return err
			}
		}
	}
	return l.Engine.Change(ctx, changes...)
}

// unite undoes a partition. Links outside the engine that are cut pass packets again, whoever cut them.
func (l *Links) unite(ctx context.Context) error {
	var changes []emud.Fault
	w := wires.New()
	defer w.Close()
	for _, c := range l.Plan.Cable {
		if number := l.Plan.EmulatedNumber(c); number >= 0 {
			changes = append(changes, emud.Fault{Link: &number, Cause: emud.CausePartition})
			continue
		}
		for i, n := range c.Nodes {
			if err := w.Shape(n.Netns, c.Ports[i].Dev, c.Rate); err != nil {
				return err
			}
		}
	}
	return l.Engine.Change(ctx, changes...)
}

// flap breaks a link and mends it, again and again; half of each period it is down.
func (l *Links) flap(ctx context.Context, a file.Action) error {
	n := l.Plan.Node(a.Node)
	for range a.Times {
		for _, verb := range []string{"fail", "repair"} {
			if err := l.disturb(ctx, n, file.Action{Verb: verb, Node: a.Node, Peer: a.Peer}); err != nil {
				return err
			}
			if err := pause(ctx, a.Every/2); err != nil {
				return err
			}
		}
	}
	return nil
}
