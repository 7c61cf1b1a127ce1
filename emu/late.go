package emu

import (
	"math/bits"
	"time"
)

// A Lateness counts by how much parts left after their due time, in steps of an eighth.
type Lateness struct {
	counts [48 * 8]uint64
	n      uint64
	most   time.Duration
}

// add counts one part.
func (l *Lateness) add(d time.Duration) {
	d = max(d, 0)
	l.counts[min(step(uint64(d)), len(l.counts)-1)]++
	l.n++
	l.most = max(l.most, d)
}

// step numbers the intervals: below 16 each value, above 8 to each power of two.
func step(v uint64) int {
	if v < 16 {
		return int(v)
	}
	e := bits.Len64(v) - 4
	return 8*e + int(v>>e)
}

// top is the largest value of a step.
func top(i int) uint64 {
	if i < 16 {
		return uint64(i)
	}
	e := i/8 - 1
	return (uint64(i-8*e)+1)<<e - 1
}

// Quantile is the lateness that the share q of all parts did not exceed.
func (l *Lateness) Quantile(q float64) time.Duration {
	if l.n == 0 {
		return 0
	}
	left := uint64(q * float64(l.n-1))
	for i, c := range l.counts {
		if left < c {
			return min(time.Duration(top(i)), l.most)
		}
		left -= c
	}
	return l.most
}

// LateStats sum up a Lateness.
type LateStats struct {
	Parts uint64        `json:"parts"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`
}

func (l *Lateness) stats() LateStats {
	return LateStats{l.n, l.Quantile(0.5), l.Quantile(0.99), l.Quantile(0.999), l.most}
}
