package boost

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/core/tune"
)

const (
	// cubicFlows is how many flows of CUBIC there are beside one boosted connection.
	cubicFlows = 8
	// shareFor is how long they run together, beyond what they need to begin: an agent looks again after ten seconds whether
	// others are there.
	shareFor = 25 * time.Second
)

// shares measures how one boosted connection shares the path with eight flows of CUBIC, in each way to share: the part of
// what both carry that is ours. The one that is judged runs as often as there are runs, the others once.
func (b *rig) shares(ctx context.Context) error {
	if err := b.loss(ctx, "0%"); err != nil {
		return err
	}
	for i, share := range tune.Shares {
		aim, runs := "", 1
		switch {
		case tune.Share(i) == tune.Fair:
			aim, runs = "<= 0.25", b.runs()
		case b.opt.Quick:
			continue
		}
		var theirs []float64
		c := &contender{name: "share: " + share, run: func(ctx context.Context) (float64, error) {
			ours, other, err := b.share(ctx)
			theirs = append(theirs, other/1e6)
			return ours / (ours + other), err
		}}
		err := b.with(ctx, "share: "+share+"\n", func() error {
			for range runs {
				if err := b.once(ctx, fmt.Sprintf("beside %d flows of CUBIC", cubicFlows), c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("boosted beside %d flows of CUBIC, share %s: ", cubicFlows, share)
		b.add(judged(name+"our part", "ratio", aim, "", c.all), bench.NewRow(name+"the others", "Mbit/s", "", "", theirs))
	}
	return nil
}

// share is what each side carries, in bits a second.
func (b *rig) share(ctx context.Context) (ours, theirs float64, err error) {
	type result struct {
		rate float64
		err  error
	}
	beside := make(chan result, 1)
	go func() {
		rate, err := b.iperf(ctx, "cubic", iperfPlain, cubicFlows, settle, shareFor)
		beside <- result{rate, err}
	}()
	ours, err = b.iperf(ctx, "cubic", iperfBoosted, 1, settle, shareFor)
	other := <-beside
	if err == nil {
		err = other.err
	}
	return ours, other.rate, err
}
