package lab

import "context"

// startPrograms starts all programs that the timeline does not, and waits until those of a service
// are registered.
func (l *Lab) startPrograms(ctx context.Context) error {
	for _, n := range l.plan.Nodes {
		for _, p := range n.Programs {
			if p.Manual {
				continue
			}
			if err := l.programs.Start(ctx, n, p); err != nil {
				return err
			}
		}
	}
	return l.control.Registered(ctx)
}
