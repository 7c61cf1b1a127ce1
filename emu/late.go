package emu

import (
	"math/bits"
	"time"
)

// A Lateness counts by how much packets left after their due time, in steps of an eighth. It has one size, whatever it
// counts.
type Lateness struct {
	counts [48 * 8]uint64
	n      uint64
	most   time.Duration
}

// Add counts n packets.
func (l *Lateness) Add(d time.Duration, n uint64) {
	d = max(d, 0)
	l.counts[min(step(uint64(d)), len(l.counts)-1)] += n
	l.n += n
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

// Count is how many packets there are.
func (l *Lateness) Count() uint64 { return l.n }

// Beyond is how many packets were later than d, without those of the step that d is in.
func (l *Lateness) Beyond(d time.Duration) (n uint64) {
	for _, c := range l.counts[min(step(uint64(max(d, 0)))+1, len(l.counts)):] {
		n += c
	}
	return n
}

// Quantile is the lateness that the share q of all packets did not exceed.
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
	Packets uint64        `json:"packets"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	P999    time.Duration `json:"p999_ns"`
	Max     time.Duration `json:"max_ns"`
}

// Stats sum it up.
func (l *Lateness) Stats() LateStats {
	return LateStats{l.n, l.Quantile(0.5), l.Quantile(0.99), l.Quantile(0.999), l.most}
}
