package hosts

import (
	"context"
	"fmt"
	"sync"
)

// A gauge is how many instances each router knows.
type gauge struct {
	mu      sync.Mutex
	of      map[string]int
	changed chan struct{} // closed at a change
}

func newGauge() *gauge { return &gauge{of: make(map[string]int), changed: make(chan struct{})} }

func (g *gauge) set(name string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[name] = n
	close(g.changed)
	g.changed = make(chan struct{})
}

// until waits until all know so many.
func (g *gauge) until(ctx context.Context, n int) error {
	for {
		g.mu.Lock()
		behind := 0
		var one string
		for name, have := range g.of {
			if have != n {
				behind, one = behind+1, fmt.Sprintf("%s knows %d", name, have)
			}
		}
		changed := g.changed
		g.mu.Unlock()
		if behind == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d routers do not know all %d instances, %s: %w", behind, len(g.of), n, one, ctx.Err())
		}
	}
}
