package session

import (
	"math/rand/v2"
	"time"

	"scaffold.dev/scaffold/sid"
)

// A Rate is how often something may happen: so often a second, and so often at once after a while without.
type Rate struct{ Second, Burst int }

// measured is how many sources are told apart. Two of them may share what one has; which ones nobody knows outside.
const measured = 4096

// A Measure bounds what is done for others: for each source and for all together. Its size does not depend on how many
// there are, since sources are addresses that anybody can make up. It belongs to one goroutine.
type Measure struct {
	each, all Rate
	seed      uint64
	sources   [measured]bucket
	sum       bucket
	began     time.Time
}

// bucket is what may still be taken; zero is a full one.
type bucket struct {
	used float64
	at   time.Duration // since the measure began
}

// NewMeasure begins with all that the rates allow.
func NewMeasure(each, all Rate) *Measure {
	return &Measure{each: each, all: all, seed: rand.Uint64() | 1}
}

// Take reports whether something may be done for the source now, and if so counts it.
func (m *Measure) Take(now time.Time, source sid.Locator) bool {
	if m.began.IsZero() {
		m.began = now
	}
	at := now.Sub(m.began)
	s := &m.sources[uint64(source)*m.seed>>52] // the upper 12 bits: measured
	if !s.room(at, m.each) || !m.sum.room(at, m.all) {
		return false
	}
	s.used++
	m.sum.used++
	return true
}

// room gives back what time has, and reports whether there is one to take.
func (b *bucket) room(at time.Duration, r Rate) bool {
	if at > b.at {
		b.used = max(0, b.used-(at-b.at).Seconds()*float64(r.Second))
	}
	b.at = at
	return b.used+1 <= float64(r.Burst)
}
