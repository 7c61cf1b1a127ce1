package fidelity

import (
	"fmt"
	"math"
	"time"

	"scaffold.dev/scaffold/emu"
)

// faults are the ways in which a direction was not what was asked for.
func (r *Row) faults(d *Direction, b Bounds) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if tooMany(r.TooLate, r.Late.Packets, oneOfMany) {
		say("%d of %d packets (%.3g %%) left more than %v late; one in a hundred may; the latest %v", r.TooLate, r.Late.Packets,
			100*share(r.TooLate, r.Late.Packets), r.LateBound, r.Late.Max.Round(time.Microsecond))
	}
	if d.Blind != nil {
		say("how long frames wait at its interface is not known: %v", d.Blind)
	}
	taken := r.Packets - r.Overflow
	want := float64(r.RateAsked) * (1 - r.Loss) // what is lost has used the rate
	if off := math.Abs(r.Rate.Mean/want - 1); r.Rate.Windows > 0 && off > b.Rate+deviations*spread(d.Params, taken) {
		say("delivered %.5g Mbit/s where %.5g were asked for, %.2f %% off, bound %.2f %%", r.Rate.Mean/1e6, want/1e6, 100*off, 100*b.Rate)
	}
	if off := math.Abs(r.Loss - r.LossAsked); off > deviations*spread(d.Params, taken) {
		say("lost %.4g %% of %d packets where %.4g %% were asked for", 100*r.Loss, taken, 100*r.LossAsked)
	}
	if d.Missing > 0 {
		say("%d packets lost because the emulator had no memory or room for them", d.Missing)
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

// How unlikely chance has to be: minus the natural logarithm of its probability. A certificate has one row for each of
// perhaps thousands of directions, one in a million of which may be called unfaithful by chance, as with deviations;
// all of them together are judged once, where one in a thousand is enough.
const (
	oneOfMany = 13.8
	once      = 6.9
)

// lateShare is the share of packets that may be later than the bound.
const lateShare = 0.01

// tooMany reports whether so many of n packets are late that it is no chance, where each of them is with probability
// lateShare. Of few packets the percentile is one of them, or none, and says nothing. The probability of k or more is at
// most exp(-n*D) with the divergence D of k/n from that share (Chernoff 1952; Hoeffding 1963).
func tooMany(k, n uint64, chance float64) bool {
	p := share(k, n)
	if p <= lateShare {
		return false
	}
	divergence := p * math.Log(p/lateShare)
	if p < 1 {
		divergence += (1 - p) * math.Log((1-p)/(1-lateShare))
	}
	return float64(n)*divergence > chance
}
