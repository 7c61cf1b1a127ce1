package boost

import (
	"context"
	"time"

	"scaffold.dev/scaffold/bench"
)

// cubicSearch is how long agents look for the number of connections before they are compared: five times twice as many, with
// 50 round trips for each.
const cubicSearch = 20 * time.Second

// cubicOnly compares agents that have no BBR with as many flows of CUBIC as they have connections.
func (b *rig) cubicOnly(ctx context.Context) error {
	if err := b.loss(ctx, lossOfMost); err != nil {
		return err
	}
	return b.with(ctx, "control: cubic\n", func() error {
		if _, err := b.iperf(ctx, "cubic", iperfBoosted, 1, 0, cubicSearch); err != nil {
			return err
		}
		found := 1
		var numbers []float64
		ours := b.boosted()
		run := ours.run
		ours.run = func(ctx context.Context) (float64, error) {
			before, err := b.trunk(ctx)
			if err != nil {
				return 0, err
			}
			rate, err := run(ctx)
			if err != nil {
				return 0, err
			}
			after, err := b.trunk(ctx)
			found = max(senders(gave(trunkSent(before), trunkSent(after))), 1)
			numbers = append(numbers, float64(found))
			return rate, err
		}
		peer := &contender{name: "as many CUBIC flows", run: func(ctx context.Context) (float64, error) {
			return b.iperf(ctx, "cubic", iperfPlain, found, settle, b.opt.Each)
		}}
		for range b.runs() { // ours always first: it says how many
			for _, c := range []*contender{ours, peer} {
				if err := b.once(ctx, "CUBIC alone", c); err != nil {
					return err
				}
			}
		}
		name := "boosted with CUBIC alone, " + lossOfMost + " loss: "
		b.add(judged(name+"goodput, of as many CUBIC flows'", "ratio", ">= 0.95", rated(peer), paired(ours.all, peer.all, quotient)),
			bench.NewRow(name+"connections that the agents found", "", "", "", numbers))
		return nil
	})
}

// senders is how many connections carried a stream: those that were given a hundredth of it or more. What agents say to each
// other is less.
func senders(each []float64) (n int) {
	total := 0.
	for _, bytes := range each {
		total += bytes
	}
	for _, bytes := range each {
		if bytes > 0 && bytes >= total/100 {
			n++
		}
	}
	return n
}
