package tune

import "time"

const (
	// alike is how many intervals have to be: one burst, or one loss, is no verdict.
	alike = 3
	// shortest is the shortest interval, and rounds how many round trips one has at least: a window that was halved has
	// grown again.
	shortest = 200 * time.Millisecond
	rounds   = 8
	// fewest is how many looks an interval has at least: an agent that had no processor has seen nothing.
	fewest = 3
)

// Interval is how long an agent looks until it counts what it saw.
func Interval(rtt time.Duration) time.Duration { return max(rounds*rtt, shortest) }

// A Judge has seen what one end of a stream waited for. The zero value has seen nothing.
type Judge struct {
	seen  [looks]uint16
	total uint16
	began time.Time
	last  [alike]Look // verdicts of intervals, the latest first
	found Look
}

// See takes a look. interval is that of the path now.
func (j *Judge) See(now time.Time, l Look, interval time.Duration) {
	if j.total == 0 {
		j.began = now
	}
	if j.total < 1<<16-1 {
		j.seen[l]++
		j.total++
	}
	if now.Sub(j.began) < interval || j.total < fewest {
		return
	}
	copy(j.last[1:], j.last[:])
	j.last[0] = j.most()
	j.seen, j.total = [looks]uint16{}, 0
	for _, l := range j.last {
		if l != j.last[0] {
			return // what was found before holds until something else is as sure
		}
	}
	j.found = j.last[0]
}

// most is what was seen more than half of the time.
func (j *Judge) most() Look {
	for l, n := range j.seen {
		if 2*n > j.total {
			return Look(l)
		}
	}
	return Unknown
}

// Found is what the end waits for; Unknown: nothing yet, or nothing in particular.
func (j *Judge) Found() Look { return j.found }
