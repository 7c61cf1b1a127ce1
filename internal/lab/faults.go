package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"scaffold.dev/scaffold/internal/emud"
)

// causes are why the engine loses what a link carries, by the verb of the action that breaks it.
var causes = map[string]string{"cut": emud.CauseCut, "unplug": emud.CauseUnplug, "fail": emud.CauseFail, "repair": emud.CauseFail}

// fault carries out a fault or a repair.
func (l *Lab) fault(ctx context.Context, a Action) error {
	switch a.Verb {
	case "partition":
		return l.partition(ctx, a.Parts)
	case "unite":
		return l.unite(ctx)
	case "flap":
		return l.flap(ctx, a)
	case "upgrade":
		return l.upgrade(ctx, a)
	}
	n := l.plan.Node(a.Node)
	down := a.Verb == "fail"
	switch {
	case a.NIC:
		return l.failNIC(ctx, n, a.Peer, down)
	case a.Peer == "" && n.Kind.engine():
		return l.failRouter(ctx, n, down)
	}
	return l.disturb(ctx, n, a)
}

// failRouter stops a router inside the engine. Its neighbours outside lose their carrier.
func (l *Lab) failRouter(ctx context.Context, n *PlanNode, down bool) error {
	if _, err := l.Engine().Change(ctx, emud.Fault{Router: n.Name, Down: down}); err != nil {
		return err
	}
	return l.carriers(n, down)
}

// carriers takes down all interfaces at the links of a node, or sets them up again.
func (l *Lab) carriers(n *PlanNode, down bool) error {
	w := newWirer()
	defer w.close()
	verb := "repair"
	if down {
		verb = "fail"
	}
	for _, p := range n.Ports {
		for i, end := range p.Link.Nodes {
			if !end.Kind.namespace() {
				continue
			}
			if err := l.disturbEnd(w, verb, end.Netns, p.Link.Ports[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// failNIC breaks the interfaces of a router inside the engine towards a neighbour, which keeps its carrier.
func (l *Lab) failNIC(ctx context.Context, n *PlanNode, peer string, down bool) error {
	var changes []emud.Fault
	for i, p := range n.Ports {
		if p.Far.Name == peer {
			changes = append(changes, emud.Fault{Router: n.Name, Port: &i, Down: down})
		}
	}
	_, err := l.Engine().Change(ctx, changes...)
	return err
}

// engineFault has the engine lose what a link carries, or pass it again; others are left alone.
func (l *Lab) engineFault(ctx context.Context, c *PlanLink, verb string) error {
	number := l.plan.engineLink(c)
	if number < 0 {
		return nil
	}
	var changes []emud.Fault
	if verb == "heal" {
		for _, cause := range []string{emud.CauseCut, emud.CauseUnplug} {
			changes = append(changes, emud.Fault{Link: &number, Cause: cause})
		}
	} else {
		changes = append(changes, emud.Fault{Link: &number, Cause: causes[verb], Down: verb != "repair"})
	}
	_, err := l.Engine().Change(ctx, changes...)
	return err
}

// engineLink is the number of a link with an end inside the engine, -1 for others.
func (p *Plan) engineLink(c *PlanLink) int {
	if !c.inEngine() {
		return -1
	}
	return p.emulatedNumber(c)
}

// inEngine reports whether an end of the link is the engine's own, and no interface in a namespace.
func (c *PlanLink) inEngine() bool {
	for _, n := range c.Nodes {
		if n.Kind.engine() || n.Kind == Outside {
			return true
		}
	}
	return false
}

// emulatedNumber is the number of a link among the engine's, -1 for a link that is none of them.
func (p *Plan) emulatedNumber(c *PlanLink) int {
	number := 0
	for _, other := range p.Cable {
		switch {
		case other.Emulated == nil:
		case other == c:
			return number
		default:
			number++
		}
	}
	return -1
}

// partition cuts all links between the parts. Nodes that belong to none go with the nearest.
func (l *Lab) partition(ctx context.Context, parts [][]string) error {
	of := l.plan.parts(parts)
	var changes []emud.Fault
	w := newWirer()
	defer w.close()
	for _, c := range l.plan.Cable {
		if of[c.Nodes[0]] == of[c.Nodes[1]] {
			continue
		}
		if number := l.plan.emulatedNumber(c); number >= 0 {
			changes = append(changes, emud.Fault{Link: &number, Cause: emud.CausePartition, Down: true})
			continue
		}
		for i, n := range c.Nodes {
			if err := w.cut(n.Netns, c.Ports[i].Dev); err != nil {
				return err
			}
		}
	}
	return l.change(ctx, changes)
}

// change carries out faults of the engine, if there are any.
func (l *Lab) change(ctx context.Context, changes []emud.Fault) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := l.Engine().Change(ctx, changes...)
	return err
}

// parts says which part each node belongs to, by breadth from those that are named. With one part alone all others
// are the second.
func (p *Plan) parts(named [][]string) map[*PlanNode]int {
	of := map[*PlanNode]int{}
	var queue []*PlanNode
	for i, part := range named {
		for _, name := range part {
			of[p.Node(name)] = i
			queue = append(queue, p.Node(name))
		}
	}
	if len(named) == 1 {
		for _, n := range p.Nodes {
			if _, ok := of[n]; !ok {
				of[n] = 1
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, port := range queue[0].Ports {
			if _, ok := of[port.Far]; !ok {
				of[port.Far] = of[queue[0]]
				queue = append(queue, port.Far)
			}
		}
	}
	return of
}

// unite undoes a partition. Links outside the engine that are cut pass packets again, whoever cut them.
func (l *Lab) unite(ctx context.Context) error {
	var changes []emud.Fault
	w := newWirer()
	defer w.close()
	for _, c := range l.plan.Cable {
		if number := l.plan.emulatedNumber(c); number >= 0 {
			changes = append(changes, emud.Fault{Link: &number, Cause: emud.CausePartition})
			continue
		}
		for i, n := range c.Nodes {
			if err := w.shape(n.Netns, c.Ports[i].Dev, c.Rate); err != nil {
				return err
			}
		}
	}
	return l.change(ctx, changes)
}

// flap breaks a link and mends it, again and again; half of each period it is down.
func (l *Lab) flap(ctx context.Context, a Action) error {
	n := l.plan.Node(a.Node)
	for range a.Times {
		for _, verb := range []string{"fail", "repair"} {
			if err := l.disturb(ctx, n, Action{Verb: verb, Node: a.Node, Peer: a.Peer}); err != nil {
				return err
			}
			if err := pause(ctx, a.Every/2); err != nil {
				return err
			}
		}
	}
	return nil
}

// upgrade gives a share of the emulated routers another program, while they run.
func (l *Lab) upgrade(ctx context.Context, a Action) error {
	swap := emud.Swap{Program: a.Runs, Parameters: map[string]string{}}
	for _, s := range a.Set {
		swap.Parameters[s.Key] = s.Value
	}
	for _, n := range l.File.chosen(a) {
		if err := l.Engine().Swap(ctx, n.Name, swap); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// chosen are the routers that an upgrade reaches: the same for the same seed.
func (f *File) chosen(a Action) []*Node {
	all := f.of(Emulated)
	r := rand.New(rand.NewPCG(a.Seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:int(math.Ceil(a.Share*float64(len(all))))]
}
