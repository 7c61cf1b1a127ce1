package split

import (
	"math"
	"testing"
)

func TestChiSquareKnownValues(t *testing.T) {
	// Critical values of the chi-square distribution at p = 0.05.
	for _, c := range []struct {
		df   int
		stat float64
	}{{1, 3.841}, {2, 5.991}, {5, 11.070}, {9, 16.919}} {
		if p := upperGamma(float64(c.df)/2, c.stat/2); math.Abs(p-0.05) > 1e-4 {
			t.Errorf("df %d, statistic %v: p = %v, want 0.05", c.df, c.stat, p)
		}
	}
	if p := ChiSquare([]int{1667, 3333, 5000}, []float64{1, 2, 3}); p < 0.99 {
		t.Errorf("exact split: p = %v, want about 1", p)
	}
	if p := ChiSquare([]int{517, 3175, 6308}, []float64{1, 2, 3}); p > 1e-6 {
		t.Errorf("5:32:63 split: p = %v, want about 0", p)
	}
}
