package switchd

import (
	"net/netip"
	"time"
)

const (
	answerTokens = 20_000                     // answers of a kind a second, and as many at once
	answerEvery  = time.Second / answerTokens // a token
	failEvery    = 100 * time.Millisecond     // between two FAILs to one sender's flow
	toldMax      = 1 << 14                    // senders that are remembered for it
)

// A bucket limits answers of a kind.
type bucket struct {
	tokens int64
	filled time.Time
}

// take says whether another answer may be sent.
func (b *bucket) take(now time.Time) bool {
	if fresh := int64(now.Sub(b.filled) / answerEvery); fresh > 0 {
		b.tokens, b.filled = min(answerTokens, b.tokens+min(fresh, answerTokens)), now
	}
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

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
