package boost

import (
	"context"
	"fmt"
)

// resent measures what of a stream went out more than once because an agent put it on another connection, beside what TCP
// itself sent again: what the near agent's connections were given, less what the stream has. Frames' headers are in it.
func (b *rig) resent(ctx context.Context) error {
	size := int64(carries / 8 * b.opt.Each.Seconds())
	c := &contender{name: "bytes resent", run: func(ctx context.Context) (float64, error) {
		before, err := b.trunk(ctx)
		if err != nil {
			return 0, err
		}
		if _, err := b.carry(ctx, b.server(ownBoosted), ownBoosted, size); err != nil {
			return 0, err
		}
		after, err := b.trunk(ctx)
		return beyond(gave(trunkSent(before), trunkSent(after)), size), err
	}}
	if err := b.turns(ctx, lossOfMost+" loss", c); err != nil {
		return err
	}
	b.add(judged("boosted, "+lossOfMost+" loss: bytes that agents sent again", "%", "<= 5", fmt.Sprintf("a stream of %d MB", size/1e6), c.all))
	return nil
}

// beyond is what connections were given beyond the bytes of a stream, in percent of these.
func beyond(each []float64, size int64) float64 {
	total := -float64(size)
	for _, n := range each {
		total += n
	}
	return 100 * total / float64(size)
}
