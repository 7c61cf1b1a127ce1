package engine

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// causes are why the engine loses what a link carries, by the verb of the action that breaks it.
var causes = map[string]string{"cut": emud.CauseCut, "unplug": emud.CauseUnplug, "fail": emud.CauseFail, "repair": emud.CauseFail}

// Disturb has the engine lose what a link carries, or pass it again; others are left alone.
func (e *Engine) Disturb(ctx context.Context, c *plan.Link, verb string) error {
	number := e.plan.EngineLink(c)
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
	return e.Change(ctx, changes...)
}

// FailInterfaces breaks the interfaces of a router inside the engine towards a neighbour, which keeps its carrier.
func (e *Engine) FailInterfaces(ctx context.Context, n *plan.Node, peer string, down bool) error {
	var changes []emud.Fault
	for i, p := range n.Ports {
		if p.Far.Name == peer {
			changes = append(changes, emud.Fault{Router: n.Name, Port: &i, Down: down})
		}
	}
	return e.Change(ctx, changes...)
}

// Change carries out faults of the engine, if there are any.
func (e *Engine) Change(ctx context.Context, changes ...emud.Fault) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := e.Client().Change(ctx, changes...)
	return err
}

// Upgrade gives a share of the emulated routers another program, while they run.
func (e *Engine) Upgrade(ctx context.Context, a file.Action) error {
	swap := emud.Swap{Program: a.Runs, Parameters: map[string]string{}}
	for _, s := range a.Set {
		swap.Parameters[s.Key] = s.Value
	}
	for _, n := range e.plan.File.Chosen(a) {
		if err := e.Client().Swap(ctx, n.Name, swap); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}
