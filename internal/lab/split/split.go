// Package split judges whether flows went to instances as their weights say.
package split

import "math"

// ChiSquare is the probability that counts at least this far from the weights come from a fair draw
// by the weights: Pearson's test with len(counts)-1 degrees of freedom.
func ChiSquare(counts []int, weights []float64) float64 {
	var total, sum, stat float64
	for i := range counts {
		total += float64(counts[i])
		sum += weights[i]
	}
	for i := range counts {
		expected := total * weights[i] / sum
		d := float64(counts[i]) - expected
		stat += d * d / expected
	}
	return upperGamma(float64(len(counts)-1)/2, stat/2)
}

// upperGamma is the regularized upper incomplete gamma function Q(a, x): by its series below a+1 and
// by Lentz's continued fraction above (DLMF 8.11.4 and 8.9.2).
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	lg, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := 1; n < 1000 && term > sum*1e-15; n++ {
			term *= x / (a + float64(n))
			sum += term
		}
		return 1 - front*sum
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for n := 1; n < 1000; n++ {
		an := -float64(n) * (float64(n) - a)
		b += 2
		d = 1 / nonzero(an*d+b, tiny)
		c = nonzero(b+an/c, tiny)
		step := d * c
		h *= step
		if math.Abs(step-1) < 1e-15 {
			break
		}
	}
	return front * h
}

func nonzero(v, tiny float64) float64 {
	if math.Abs(v) < tiny {
		return tiny
	}
	return v
}
