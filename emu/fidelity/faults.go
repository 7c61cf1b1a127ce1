package fidelity

import (
	"fmt"
	"math"

	"scaffold.dev/scaffold/emu"
)

// faults are the ways in which a direction was not what was asked for.
func (r Row) faults(d Direction, b Bounds) (all []string) {
	say := func(format string, args ...any) {
		all = append(all, r.From+"->"+r.To+": "+fmt.Sprintf(format, args...))
	}
	if r.Late.Parts > 0 && r.Late.P99 > b.LateP99 {
		say("one in a hundred packets left %v late or more, bound %v", r.Late.P99, b.LateP99)
	}
	taken := r.Packets - r.Overflow
	want := float64(r.RateAsked) * (1 - r.Loss) // what is lost has used the rate
	if off := math.Abs(r.Rate.Mean/want - 1); r.Rate.Windows > 0 && off > b.Rate+deviations*spread(d.Stats.Params, taken) {
		say("delivered %.5g Mbit/s where %.5g were asked for, %.2f %% off, bound %.2f %%", r.Rate.Mean/1e6, want/1e6, 100*off, 100*b.Rate)
	}
	if off := math.Abs(r.Loss - r.LossAsked); off > deviations*spread(d.Stats.Params, taken) {
		say("lost %.4g %% of %d packets where %.4g %% were asked for", 100*r.Loss, taken, 100*r.LossAsked)
	}
	if d.Stats.Starved > 0 {
		say("%d packets lost because the emulator had no memory or room for them", d.Stats.Starved)
	}
	if d.Dropped > 0 {
		say("%d frames lost at the interface because the emulator did not read them in time", d.Dropped)
	}
	return all
}

// deviations is how many standard deviations a share may be off: five are exceeded in one of a million runs.
const deviations = 5

// spread is the standard deviation of the share of n packets that is lost. Packets that are lost in bursts are lost
// together, which makes the share of as many packets less certain.
func spread(p emu.Params, n uint64) float64 {
	if n == 0 {
		return 1
	}
	alone := p.Loss * (1 - p.Loss)
	burst := p.Burst
	if burst == 0 {
		burst = emu.DefaultBurst
	}
	together := p.BurstLoss * (1 - p.BurstLoss) * 2 * burst
	if alone+together == 0 {
		return 0
	}
	return math.Sqrt((alone+together)/float64(n)) + 1/float64(n)
}

// overrun says where a thread of the emulator did not keep up.
func overrun(i int, s emu.ShardStats, b Bounds) (all []string) {
	if s.Edges > 0 && s.Turns.P99 > b.Turn {
		all = append(all, fmt.Sprintf("thread %d: one in a hundred times interfaces waited %v or more to be read, bound %v", i, s.Turns.P99, b.Turn))
	}
	return all
}
