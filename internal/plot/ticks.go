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
