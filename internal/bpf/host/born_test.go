package host

import (
	"testing"
	"time"
)

func TestAFlowKnowsWhenItBegan(t *testing.T) {
	w := newWorld(t)
	before := time.Now()
	connect(t, w, 4000, 100)
	f, ok, err := w.edge.Lookup(webFlow)
	if err != nil || !ok {
		t.Fatalf("the flow: %v %v", ok, err)
	}
	began, known := f.Began()
	const tick = 10 * time.Millisecond // the edge's clock is that of the last timer interrupt
	if grain := time.Duration(1<<bornGrain) + tick; !known || began.Before(before.Add(-grain)) || began.After(time.Now()) {
		t.Errorf("began %v, known %v; want within %v before %v", began, known, grain, before)
	}
}

func TestTheAgeOfAFlow(t *testing.T) {
	const grain = time.Duration(1 << bornGrain)
	for _, c := range []struct {
		born, now time.Duration
		want      time.Duration // from a grain before
	}{
		{time.Hour, time.Hour, 0},
		{time.Hour, time.Hour + 5*time.Minute, 5 * time.Minute},
		{104 * 24 * time.Hour, 105 * 24 * time.Hour, 24 * time.Hour}, // the count began anew between the two
		{300 * 24 * time.Hour, 400 * 24 * time.Hour, 100 * 24 * time.Hour},
	} {
		age, known := ageOf(bornAt(uint64(c.born)), uint64(c.now))
		if !known || age < c.want || age > c.want+grain {
			t.Errorf("born at %v, at %v: %v, known %v; want %v", c.born, c.now, age, known, c.want)
		}
	}
	if _, known := ageOf([3]uint8{}, uint64(time.Hour)); known {
		t.Error("a flow of which nobody noted it has an age")
	}
}
