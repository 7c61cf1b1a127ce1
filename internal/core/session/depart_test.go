package session

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/wire"
)

// While the last flows of a host are yet to move, the first have their answer; one that went elsewhere meanwhile
// is left alone, and what is left follows the host.
func TestADepartureMovesSomeAtATime(t *testing.T) {
	w := newWorld(t, 2)
	a, b := w.hosts[0], w.hosts[1]
	var keys []Key
	for range 30 {
		keys = append(keys, w.connect(a, b, Flow{}))
	}
	from, second, third := a.at, w.place(a), w.place(a)
	a.at = second
	d := a.Depart(from, second)
	if !a.Advance(w.now, d, 10) {
		t.Fatal("nothing is left after 10 of 30")
	}
	w.collect(a)
	w.heal2()
	for i, k := range keys {
		want := from
		if i < 10 {
			want = second
		}
		if v, _ := a.View(k); v.Local.Locator != want || v.State != Bound {
			t.Fatalf("flow %d is %v at %v, want it bound at %v", i, v.State, v.Local.Locator, want)
		}
	}
	a.MoveFlow(w.now, keys[29], second)
	a.at = third
	d.Reroute(second, third)
	a.Move(w.now, second, third) // the first ten, and the one that had gone by itself
	for a.Advance(w.now, d, 10) {
	}
	w.collect(a)
	w.heal()
	for i, k := range keys {
		w.believe(k, a, b)
		want := uint32(2)
		if i >= 10 && i < 29 {
			want = 1
		}
		if v, _ := a.View(k); v.Epoch != want || v.Local.Locator != third {
			t.Errorf("flow %d moved %d times and is at %v, want %d and %v", i, v.Epoch, v.Local.Locator, want, third)
		}
	}
}

// A peer that is at work on a great move is not asked twice; one that says nothing is.
func TestAPeerAtWorkIsNotAskedAgain(t *testing.T) {
	for _, c := range []struct {
		what   string
		answer bool
		silent time.Duration
		again  bool
	}{
		{"it answers", true, patientFor - 1, false},
		{"it has answered", true, patientFor, true},
		{"it never answered", false, patientFor - 1, true},
	} {
		w := newWorld(t, 2)
		a, b := w.hosts[0], w.hosts[1]
		k := w.connect(a, b, Flow{})
		for range 2 * patientOver {
			w.connect(a, b, Flow{})
		}
		from := a.at
		a.at = w.place(a)
		a.MoveFlow(w.now, k, a.at)
		w.collect(a)
		if c.answer {
			w.heal2()
		}
		a.Move(w.now, from, a.at)
		w.collect(a)
		w.pool, w.sent = nil, 0
		a.Expire(w.now.Add(c.silent))
		w.collect(a)
		if again := w.sent > 0; again != c.again {
			t.Errorf("%s: %d messages after %v", c.what, w.sent, c.silent)
		}
	}
}

// A great move that takes its peer longer than any flow may ask loses none of them; once nothing is heard any more,
// what has not been answered is given up.
func TestASlowPeerIsNotGivenUp(t *testing.T) {
	w := newWorld(t, 2)
	a, b := w.hosts[0], w.hosts[1]
	var last Key
	for range 4 * patientOver {
		last = w.connect(a, b, Flow{})
	}
	a.cfg.Times = DefaultTimes
	one := w.connect(a, b, Flow{})
	w.move(a)
	for start := w.now; w.now.Sub(start) < 3*time.Minute; { // it answers, others
		w.pool = nil
		w.tick()
		if v, _ := a.View(last); v.State != Moving {
			t.Fatalf("after %v: a flow that was not answered is %v, resets %v", w.now.Sub(start), v.State, a.resets)
		}
		a.lastHeard = w.now
	}
	if len(a.resets) > 0 {
		t.Errorf("resets while the peer answered others: %v", a.resets)
	}
	for range 200 {
		w.pool = nil
		w.tick()
	}
	if a.resets[one] != wire.Unreachable || a.resets[last] != wire.Unreachable {
		t.Errorf("resets once it answered nothing: %d", len(a.resets))
	}
}
