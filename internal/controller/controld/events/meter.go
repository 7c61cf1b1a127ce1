package events

import (
	"sync"
	"time"
)

// How many refused calls of members are told at once, and each second: they are saved too, a second's worth in one
// write. Unauthenticated calls are told in memory alone, and fewer: they cost no write.
const (
	RefusedBurst           = 20
	RefusedASecond         = 1
	unauthenticatedBurst   = 10
	unauthenticatedASecond = 0.1
)

// A Meter lets somebody tell so much and no more.
type Meter struct {
	tokens  float64
	filled  time.Time
	Skipped uint64 // how many were not told since the last one
}

// Take reports whether there is room for one more.
func (m *Meter) Take(now time.Time, burst, aSecond float64) bool {
	m.tokens = min(burst, m.tokens+now.Sub(m.filled).Seconds()*aSecond)
	m.filled = now
	if m.tokens < 1 {
		m.Skipped++
		return false
	}
	m.tokens--
	return true
}

// Refusals measure what is told of refused calls; for every goroutine, so that a flood does not reach the loop.
type Refusals struct {
	mu                       sync.Mutex
	members, unauthenticated Meter
}

// Take reports whether to tell of a call that is refused, and how many were not told of before it.
func (r *Refusals) Take(unauthenticated bool) (skipped uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, burst, rate := &r.members, float64(RefusedBurst), float64(RefusedASecond)
	if unauthenticated {
		m, burst, rate = &r.unauthenticated, unauthenticatedBurst, unauthenticatedASecond
	}
	if ok = m.Take(time.Now(), burst, rate); ok {
		skipped, m.Skipped = m.Skipped, 0
	}
	return skipped, ok
}
