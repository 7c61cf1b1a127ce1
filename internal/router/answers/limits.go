package answers

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

const (
	answersMost = 20_000                 // of a kind a second, and as many at once
	failEvery   = 100 * time.Millisecond // between two FAILs to one sender's flow
	toldMax     = 1 << 14                // senders that are remembered for it
)

// told remembers who was answered within the last failEvery, in two generations: what the older one holds has
// been long enough ago when the next is begun.
type told struct {
	now, before map[netip.Addr]time.Time
	begun       time.Time
}

// lately says whether the sender's end of the flow was answered a moment ago, and notes that it now is. Where too
// many were, all others were too.
func (t *told) lately(now time.Time, sender netip.Addr) bool {
	if t.now == nil || now.Sub(t.begun) >= failEvery {
		t.before, t.now, t.begun = t.now, map[netip.Addr]time.Time{}, now
	}
	for _, m := range []map[netip.Addr]time.Time{t.now, t.before} {
		if at, ok := m[sender]; ok && now.Sub(at) < failEvery {
			return true
		}
	}
	if len(t.now) >= toldMax {
		return true
	}
	t.now[sender] = now
	return false
}

// limiter bounds how many answers of a kind are given.
func limiter() *rate.Limiter { return rate.NewLimiter(answersMost, answersMost) }
