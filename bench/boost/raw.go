package boost

import (
	"context"
	"slices"
	"time"
)

// counts are the numbers of flows of which the best is looked for.
var counts = []int{1, 2, 4, 8, 16, 32}

// Each number of flows is tried once and for a short time: the best one then runs in turns, as long as all others.
const (
	tryAfter = time.Second
	tryFor   = time.Second
)

// best looks for what carries most by itself at this loss: so many flows, with CUBIC or with BBR.
func (b *rig) best(ctx context.Context, loss string) (*contender, error) {
	var all []*contender
	for _, control := range []string{"cubic", "bbr"} {
		for _, n := range counts {
			c := &contender{name: flowsOf(control, n), run: func(ctx context.Context) (float64, error) {
				return b.iperf(ctx, control, iperfPlain, n, tryAfter, tryFor)
			}}
			o, err := observed(ctx, b.lab, func() (float64, error) { return c.run(ctx) })
			if err != nil {
				return nil, err
			}
			c.all = append(c.all, o)
			all = append(all, c)
		}
	}
	i := most(all)
	b.note("%s loss: of 1 to 32 flows the best one, of %v of each: %s", loss, tryFor, rated(all[i]))
	return b.raw([]string{"cubic", "bbr"}[i/len(counts)], counts[i%len(counts)]), nil
}

// most is which of the contenders carried most in its run. Where the emulator did all that it was asked in any, it is one of
// these.
func most(all []*contender) int {
	better := func(a, b *contender) int {
		x, y := a.all[0], b.all[0]
		switch {
		case x.blame == "" && y.blame != "":
			return 1
		case x.blame != "" && y.blame == "":
			return -1
		case x.value > y.value:
			return 1
		case x.value < y.value:
			return -1
		}
		return 0
	}
	return slices.Index(all, slices.MaxFunc(all, better))
}

// bestAim is what is wanted beside the best of many flows: as much, and where nothing is lost almost.
func bestAim(loss string) string {
	if loss == "0%" {
		return ">= 0.98"
	}
	return ">= 1"
}
