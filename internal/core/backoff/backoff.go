// Package backoff says how long to wait between attempts at what does not succeed yet.
package backoff

import "time"

// A Backoff is the pause between attempts: First, and twice as long after each that comes to nothing, up to Last. Who waits
// looks at the clock, and at what ends the waiting sooner.
type Backoff struct {
	First, Last time.Duration
	next        time.Duration // 0: First
}

// Now is the pause before the next attempt, which may be tried again without one.
func (b *Backoff) Now() time.Duration {
	if b.next == 0 {
		return b.First
	}
	return b.next
}

// Next is the pause after an attempt that came to nothing. Where Last has become less than the pause is, it stays.
func (b *Backoff) Next() time.Duration {
	now := b.Now()
	b.next = min(2*now, max(now, b.Last))
	return now
}

// Set has the next pause be so long.
func (b *Backoff) Set(pause time.Duration) { b.next = pause }

// Reset begins anew: an attempt has succeeded.
func (b *Backoff) Reset() { b.next = 0 }
