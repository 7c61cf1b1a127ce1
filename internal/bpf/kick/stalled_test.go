package kick

import (
	"testing"
	"time"
)

func TestStalledAddsUpTheTimeoutsThatWentBy(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what string
		s    Socket
		want time.Duration
	}{
		{"idle", Socket{Backoff: 2, RTO: 400 * ms}, 0},
		{"in flight, nothing timed out", Socket{SndNxt: 1, Written: 1, RTO: 100 * ms, Due: 50 * ms}, 0},
		{"one timeout, half of the second", Socket{SndNxt: 1, Written: 1, Backoff: 1, RTO: 200 * ms, Due: 100 * ms}, 200 * ms},
		{"two timeouts", Socket{SndNxt: 1, Written: 1, Backoff: 2, RTO: 400 * ms, Due: 400 * ms}, 300 * ms},
		{"nothing in flight, two tries without an answer", Socket{Written: 1, Backoff: 2, Probes: 2, RTO: 400 * ms, Due: 400 * ms}, 300 * ms},
		{"the peer's window is closed, as it says", Socket{Written: 1, Backoff: 2, RTO: 400 * ms, Due: 400 * ms}, 0},
		{"overdue by a jiffy", Socket{SndNxt: 1, Written: 1, Backoff: 1, RTO: 200 * ms, Due: -4 * ms}, 300 * ms},
	} {
		if got := c.s.Stalled(); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
