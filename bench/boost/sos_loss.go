package boost

import (
	"context"

	"scaffold.dev/scaffold/bench/sos"
)

var sosLoss = SosExperiment{
	About: sos.Result{
		Name: "sos_loss", Title: "Goodput over loss",
		Setting: "A path of 500 Mbit/s and 50 ms, whose queue is one product of both, loses packets by chance towards the server. Flows of iperf3 by themselves, 1 to 32 of CUBIC or of BBR together, and one connection with CUBIC at both hosts that two agents carry. Of TCP's payload the path carries 478 Mbit/s.",
		Lacks:   "The thesis loses packets where its queues overflow, and tells of no rate of loss: that is what this is for.",
		Across:  []string{"boosted", "one CUBIC connection", "32 CUBIC flows", "one BBR connection", "32 BBR flows"},
	},
	Lab: sosPath("[c1, x]", sosLongPath),
	run: (*sosRun).loss,
}

// loss measures each contender at each rate of loss.
func (r *sosRun) loss(ctx context.Context) error {
	losses, flows := []string{"0%", "0.01%", lossOfMost, "1%"}, counts
	if r.opt.Quick {
		losses, flows = []string{lossOfMost}, counts[:1]
	}
	return r.boosted(ctx, func(b *rig) error {
		for _, loss := range losses {
			if err := b.loss(ctx, loss); err != nil {
				return err
			}
			all := sosContenders(b, flows)
			if err := b.turns(ctx, loss+" loss", all...); err != nil {
				return err
			}
			for _, c := range all {
				r.put(c.name, loss+" loss", "Mbit/s", 0, each(c.all, megabits)...)
			}
		}
		r.bests(losses)
		return nil
	})
}

// sosContenders are one boosted connection, and so many flows of either control.
func sosContenders(b *rig, flows []int) []*contender {
	all := []*contender{b.boosted()}
	for _, control := range []string{"cubic", "bbr"} {
		for _, n := range flows {
			all = append(all, b.raw(control, n))
		}
	}
	return all
}

// bests adds what the boosted connection carries of what the best of all others does.
func (r *sosRun) bests(losses []string) {
	for _, loss := range losses {
		var ours, best float64
		for _, c := range r.res.Cells {
			switch {
			case c.What != loss+" loss":
			case c.Of == "boosted":
				ours = c.Value
			default:
				best = max(best, c.Value)
			}
		}
		if best > 0 {
			r.put("boosted, of the best other", loss+" loss", sos.Ratio, 0, outcome{value: ours / best})
		}
	}
}
