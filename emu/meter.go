package emu

import "time"

// A meter measures the rate at which a way delivers while its line is never idle. It looks at what really leaves,
// and when, not at what the line decided.
type meter struct {
	window time.Duration // how long one measurement takes at least
	from   time.Duration // when the present one began; with running
	bytes  uint64
	going  bool
	anew   bool // the next part that leaves begins a measurement
	stats  RateStats
}

// RateStats sum up measurements of a rate, in bit/s.
type RateStats struct {
	Windows uint64  `json:"windows"` // measurements; the others are 0 without any
	Mean    float64 `json:"mean"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
}

// meterWindow is long against what a part of a train lasts.
const meterWindow = 100 * time.Millisecond

// reset forgets everything. Jitter moves the ends of a measurement, which is longer for it.
func (m *meter) reset(jitter time.Duration) {
	*m = meter{window: meterWindow + 100*jitter}
}

// forget begins to measure again at the next part that leaves, also where the line is not idle before.
func (m *meter) forget() { m.stats, m.anew = RateStats{}, true }

// add takes note of a part that left now; first says that the line was idle before.
func (m *meter) add(now time.Duration, bytes uint64, first bool) {
	if first || m.anew && m.going {
		m.from, m.bytes, m.going, m.anew = now, 0, true, false
		return
	}
	if !m.going {
		return
	}
	m.bytes += bytes
	if took := now - m.from; took >= m.window {
		m.note(float64(m.bytes) * 8 / took.Seconds())
		m.from, m.bytes = now, 0
	}
}

func (m *meter) note(rate float64) {
	s := &m.stats
	if s.Windows == 0 {
		s.Min, s.Max = rate, rate
	}
	s.Min, s.Max = min(s.Min, rate), max(s.Max, rate)
	s.Windows++
	s.Mean += (rate - s.Mean) / float64(s.Windows)
}
