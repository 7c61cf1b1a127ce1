package boost

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/bench"
)

// fatPath is the path of another kind, and longPath is the lab's own.
const (
	fatPath  = "x y rate 10Gbit delay 5ms queue 12500KB"
	longPath = "x y rate 500Mbit delay 25ms queue 3125KB"
)

// fat measures what two processors can show of a path of 10 Gbit/s and 10 ms.
func (b *rig) fat(ctx context.Context) error {
	if err := b.loss(ctx, "0%"); err != nil {
		return err
	}
	if err := b.link(ctx, fatPath); err != nil {
		return err
	}
	ours, one := b.boosted(), b.raw("cubic", 1)
	err := b.agents.RestartWith(ctx, "") // what they know of the path is another one's
	if err == nil {
		err = b.turns(ctx, "10 Gbit/s, 10 ms", ours, one)
	}
	if err != nil {
		return err
	}
	for _, c := range []*contender{ours, one} {
		b.add(judged("10 Gbit/s, 10 ms: "+c.name, "Gbit/s", "", "", each(c.all, func(rate float64) float64 { return rate / 1e9 })))
	}
	b.add(judged("10 Gbit/s, 10 ms: boosted, of one CUBIC connection's", "ratio", "", fmt.Sprintf("%.3g Gbit/s", bench.Quantile(values(one.all), 0.5)/1e9),
		paired(ours.all, one.all, quotient)))
	if err := b.link(ctx, longPath); err != nil {
		return err
	}
	return b.agents.RestartWith(ctx, "")
}
