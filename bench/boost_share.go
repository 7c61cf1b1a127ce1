package bench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/core/tune"
	"scaffold.dev/scaffold/internal/lab/agents"
)

const (
	// cubicFlows is how many flows of CUBIC there are beside one boosted connection.
	cubicFlows = 8
	// shareFor is how long they run together, beyond what they need to begin: an agent looks again after ten seconds whether
	// others are there.
	shareFor = 25 * time.Second
)

// shares measures how one boosted connection shares the path with eight flows of CUBIC, in each way to share: the part of
// what both carry that is ours.
func (b *boostBench) shares(ctx context.Context, runs int, rep *Report) error {
	if err := b.loss(ctx, "0%"); err != nil {
		return err
	}
	for _, share := range tune.Shares {
		if err := b.agents.RestartWith(ctx, "share: "+share+"\n"); err != nil {
			return err
		}
		var ours []float64
		for range runs {
			part, err := b.share(ctx)
			if err != nil {
				return fmt.Errorf("share: %s: %w", share, err)
			}
			ours = append(ours, part)
		}
		aim := ""
		if share == tune.Shares[tune.Fair] {
			aim = "<= 0.25"
		}
		rep.Rows = append(rep.Rows, NewRow(fmt.Sprintf("boosted beside %d flows of CUBIC, share %s: our part", cubicFlows, share), "ratio", aim, "", ours))
	}
	return b.agents.RestartWith(ctx, "")
}

func (b *boostBench) share(ctx context.Context) (float64, error) {
	to := agents.Address(b.lab, "s1").Addr().String()
	run := func(port, flows int) (float64, error) {
		return agents.Iperf(ctx, b.lab, "c1", "-c", to, "-p", fmt.Sprint(port), "-C", "cubic", "-P", fmt.Sprint(flows),
			"-t", fmt.Sprint(shareFor.Seconds()), "-O", fmt.Sprint(boostSettle.Seconds()))
	}
	type result struct {
		rate float64
		err  error
	}
	theirs := make(chan result, 1)
	go func() {
		rate, err := run(plainPort, cubicFlows)
		theirs <- result{rate, err}
	}()
	ours, err := run(boostedPort, 1)
	other := <-theirs
	if err == nil {
		err = other.err
	}
	return ours / (ours + other.rate), err
}
