package session

import (
	"fmt"
	"testing"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// accuse excuses nobody.
func accuse(sid.Locator) bool { return false }

// asking runs a doubt to its end. answer says after which PROBE, from 1, and how long after it the answer is
// there, 0: never; late is how late the caller comes each time.
func asking(d *Doubts, start time.Time, answer int, trip, late time.Duration) (took time.Duration, probes int, answered bool) {
	now := start
	var due time.Time // of the answer
	for at := d.Deadline(); ; at = d.Deadline() {
		for _, m := range d.Drain() {
			probes++
			if m.To != locator(1, 0).Host() || m.From != locator(0, 0).Host() || m.Message.Type() != wire.TypeProbe {
				panic(fmt.Sprintf("asked by %+v", m))
			}
			if probes == answer {
				due = now.Add(trip)
			}
		}
		if at.IsZero() {
			return took, probes, false
		}
		now = at.Add(late)
		took = now.Sub(start)
		if !due.IsZero() && due.Before(now) {
			l, ok := d.Answered(7)
			return took, probes, ok && l == locator(1, 0)
		}
		if silent := d.Expire(now, accuse); len(silent) > 0 {
			return took, probes, false
		}
	}
}

func TestADoubtEndsInTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what       string
		roundTrip  time.Duration // as it is known; 0: it is not
		answer     int
		trip, late time.Duration
		probes     int
		most       time.Duration
		there      bool
	}{
		{"cut off, on a local network", 100 * time.Microsecond, 0, 0, 0, 4, 65 * ms, false},
		{"cut off, distance unknown", 0, 0, 0, 0, 4, 105 * ms, false},
		{"cut off, far away", 150 * ms, 0, 0, 0, 4, 345 * ms, false},
		{"cut off, and this host is always late", 0, 0, 0, 30 * ms, 12, time.Second, false},
		{"there", 100 * time.Microsecond, 1, ms, 0, 1, 15 * ms, true},
		{"there, three PROBEs lost", 100 * time.Microsecond, 4, ms, 0, 4, 65 * ms, true},
		{"there, far away", 150 * ms, 1, 160 * ms, 0, 4, 345 * ms, true},
		{"there, distance unknown", 0, 4, 50 * ms, 0, 4, 105 * ms, true},
	} {
		start := time.Unix(1e9, 0)
		d := new(Doubts)
		d.Raise(start, locator(0, 0), locator(1, 0), 7)
		d.Raise(start, locator(0, 0), locator(1, 0), 8) // it is being asked
		if c.roundTrip > 0 {
			d.Expect(locator(1, 0), c.roundTrip)
		}
		took, probes, there := asking(d, start, c.answer, c.trip, c.late)
		if there != c.there || probes != c.probes || took > c.most {
			t.Errorf("%s: it is there: %v after %v and %d PROBEs; want %v, at most %v and %d", c.what, there, took, probes, c.there, c.most, c.probes)
		}
		if _, again := d.Answered(7); again || !d.Deadline().IsZero() {
			t.Errorf("%s: the doubt goes on", c.what)
		}
	}
}

// An answer that was under way while this host did not run is seen before anybody is given up.
func TestWhoIsLateAsksOnceMore(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := new(Doubts)
	d.Raise(now, locator(0, 0), locator(1, 0), 7)
	for range doubtProbes - 1 {
		now = d.Deadline()
		if silent := d.Expire(now, accuse); len(silent) > 0 {
			t.Fatalf("given up after %d PROBEs", len(d.Drain()))
		}
	}
	if silent := d.Expire(d.Deadline().Add(time.Second), accuse); len(silent) > 0 {
		t.Error("given up by a host that did not look for the answer in time")
	}
	if l, ok := d.Answered(7); !ok || l != locator(1, 0) {
		t.Errorf("the answer ended the doubt at %v: %v", l, ok)
	}
}

// Whose packets still come is not given up for a while, and then is.
func TestWhoIsExcusedIsAskedAgain(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := new(Doubts)
	d.Raise(now, locator(0, 0), locator(1, 0), 7)
	excuses, probes := 0, 0
	for {
		probes += len(d.Drain())
		silent := d.Expire(d.Deadline(), func(l sid.Locator) bool { excuses++; return l == locator(1, 0) })
		if len(silent) > 0 {
			break
		}
	}
	if excuses != doubtForgive+1 || probes != doubtProbes+doubtForgive {
		t.Errorf("given up after %d excuses and %d PROBEs, want %d and %d", excuses, probes, doubtForgive+1, doubtProbes+doubtForgive)
	}
}
