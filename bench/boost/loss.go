package boost

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/bench"
)

// lossOfMost is the loss at which most is compared.
const lossOfMost = "0.1%"

// losses measures what one connection carries over the path at several rates of loss from the client's site to the server's.
func (b *rig) losses(ctx context.Context) error {
	for _, loss := range []string{"0%", "0.01%", lossOfMost, "1%"} {
		if err := b.loss(ctx, loss); err != nil {
			return err
		}
		if err := b.at(ctx, loss); err != nil {
			return err
		}
	}
	if err := b.loss(ctx, lossOfMost); err != nil {
		return err
	}
	return b.resent(ctx)
}

// at measures with this loss: one connection over the agents, where most is compared one with CUBIC by itself, and whatever does
// best by itself.
func (b *rig) at(ctx context.Context, loss string) error {
	ours, one := b.boosted(), b.raw("cubic", 1)
	queues := b.watched(ours)
	all := []*contender{ours}
	if loss == lossOfMost {
		all = append(all, one)
	}
	var best *contender
	if !b.opt.Quick {
		var err error
		if best, err = b.best(ctx, loss); err != nil {
			return err
		}
		all = append(all, best)
	}
	if err := b.turns(ctx, loss+" loss", all...); err != nil {
		return err
	}
	name := "boosted, " + loss + " loss: "
	b.add(judged(name+"goodput, of what the link carries", "ratio", ">= 0.98", fmt.Sprintf("%.0f Mbit/s", carries/1e6),
		each(ours.all, func(rate float64) float64 { return rate / carries })))
	if loss == lossOfMost {
		b.add(judged(name+"goodput, of one CUBIC connection's", "ratio", ">= 38", rated(one), paired(ours.all, one.all, quotient)))
	}
	if best != nil {
		b.add(judged(name+"goodput, of the best of 1 to 32 flows'", "ratio", bestAim(loss), rated(best), paired(ours.all, best.all, quotient)))
	}
	b.add(judged(name+"standing queue between the agents", "ms", "<= 15", "", queues.of(ours.all)))
	return nil
}

// rated is a contender with its rate.
func rated(c *contender) string {
	return fmt.Sprintf("%s: %.3g Mbit/s", c.name, bench.Quantile(values(c.all), 0.5)/1e6)
}
