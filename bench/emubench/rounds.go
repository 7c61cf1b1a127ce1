package emubench

import (
	"context"
	"fmt"
)

// A lane is one of several things that are measured in turns.
type lane struct {
	name string
	run  func(context.Context) (float64, error)
	got  []float64
}

// rounds measures all lanes n times, each round in another order: what changes from second to second on a
// shared machine changes for all of them.
func rounds(ctx context.Context, n int, lanes []*lane) error {
	for round := range n {
		for i := range lanes {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			l := lanes[turn(round, i, len(lanes))]
			value, err := l.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			l.got = append(l.got, value)
		}
	}
	return nil
}

// turn is whose turn it is: forwards in even rounds, backwards in odd ones, and each pair of rounds begins with the
// next.
func turn(round, i, n int) int {
	if round%2 == 1 {
		i = n - 1 - i
	}
	return (round/2 + i) % n
}
