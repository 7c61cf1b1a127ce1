package emu

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is set, set again and removed, timers come out in the order of time and rank.
func TestTheWheelKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wheel
		timers := make([]timer, 50)
		for i := range timers {
			timers[i] = timer{rank: uint64(i), slot: idle}
		}
		var armed []*timer
		now := time.Duration(0)
		wait := rapid.OneOf(rapid.IntRange(0, 20_000), rapid.IntRange(0, 100_000_000), rapid.IntRange(0, 2_000_000_000))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				one := &timers[rapid.IntRange(0, len(timers)-1).Draw(t, "which")]
				w.set(one, now+time.Duration(wait.Draw(t, "in")))
				if !slices.Contains(armed, one) {
					armed = append(armed, one)
				}
			case 2:
				one := &timers[rapid.IntRange(0, len(timers)-1).Draw(t, "which")]
				w.remove(one)
				armed = slices.DeleteFunc(armed, func(a *timer) bool { return a == one })
			case 3:
				now += time.Duration(wait.Draw(t, "pass"))
				w.advance(now)
				for {
					slices.SortFunc(armed, func(a, b *timer) int {
						if a.before(b) {
							return -1
						}
						return 1
					})
					got := w.pop(now)
					if len(armed) == 0 || armed[0].due > now {
						if got != nil {
							t.Fatalf("at %v: got a timer of %v", now, got.due)
						}
						break
					}
					if got != armed[0] {
						t.Fatalf("at %v: got %+v, want %+v", now, got, armed[0])
					}
					armed = armed[1:]
				}
			}
		}
	})
}
