package bench

import (
	"math"
	"slices"
)

// Quantile is the q-quantile of samples (0 <= q <= 1), linear between neighbours; NaN for none.
func Quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	at := q * float64(len(s)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(s)-1)
	return s[low] + (s[high]-s[low])*(at-float64(low))
}

// Ratios divides paired samples; pairs whose peer measured nothing are left out.
func Ratios(ours, peers []float64) []float64 {
	var out []float64
	for i := range min(len(ours), len(peers)) {
		if peers[i] > 0 {
			out = append(out, ours[i]/peers[i])
		}
	}
	return out
}
