package plot

import (
	"math"
	"strconv"

	gonum "gonum.org/v1/plot"
)

// ticks are at round numbers, each with its label, and no more than this many.
type ticks struct{ most int }

// Ticks chooses the smallest of 1, 2 and 5 times a power of ten that gives few enough.
func (t ticks) Ticks(low, high float64) (all []gonum.Tick) {
	if !(high > low) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(t.most))))
	for _, factor := range []float64{2, 2.5, 2} {
		if (high-low)/step <= float64(t.most) {
			break
		}
		step *= factor
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		value := i * step
		all = append(all, gonum.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return all
}

// steps are named places at 0, 1, 2 and so on.
type steps []string

// Ticks names the steps.
func (s steps) Ticks(low, high float64) (all []gonum.Tick) {
	for i, label := range s {
		if at := float64(i); low <= at && at <= high {
			all = append(all, gonum.Tick{Value: at, Label: label})
		}
	}
	return all
}

// powers are the powers of ten of a logarithmic axis.
type powers struct{}

// Ticks are the powers of ten.
func (powers) Ticks(low, high float64) (all []gonum.Tick) {
	for e := math.Ceil(math.Log10(low)); e <= math.Log10(high); e++ {
		value := math.Pow(10, e)
		all = append(all, gonum.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return all
}

// decades are the powers of ten around all values of a panel.
func (p Panel) decades() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, l := range p.Lines {
		for _, at := range l.Points {
			low, high = min(low, at.Value), max(high, at.Value)
		}
	}
	if high == 0 {
		return 1, 10
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	return low, max(high, 10*low)
}
