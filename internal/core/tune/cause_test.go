package tune

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Each road has one thing that binds, and it is told; when it is, and with which numbers, is written down.
func TestWhatOfAPathBindsIsTold(t *testing.T) {
	path := func(change func(r *road)) *road {
		r := &road{link: 100 * mbit, rtt: 50 * time.Millisecond, buffer: 50 * time.Millisecond}
		change(r)
		return r
	}
	all := func(*road) {}
	for _, c := range []struct {
		name     string
		settings Settings
		road     *road
		want     Cause
	}{
		{"full bbr", Settings{BBR: true, First: 4}, path(all), LinkFull},
		{"full bbr despite loss", Settings{BBR: true, First: 4}, path(func(r *road) { r.loss = 0.01 }), LinkFull},
		{"full cubic", Settings{First: 4}, path(all), LinkFull},
		{"full cubic short path", Settings{First: 4}, path(func(r *road) { r.rtt = 2 * time.Millisecond }), LinkFull},
		{"full deep queue", Settings{BBR: true, First: 4}, path(func(r *road) { r.buffer = time.Second }), LinkFull},
		{"others", Settings{BBR: true, First: 4}, path(func(r *road) { r.others = 8 }), OthersTraffic},
		{"others beside full", Settings{BBR: true, First: 4, Share: Full}, path(func(r *road) { r.others = 8 }), OthersTraffic},
		{"others beside yield", Settings{BBR: true, First: 4, Share: Yield}, path(func(r *road) { r.others = 8 }), OthersTraffic},
		{"loss", Settings{First: 1}, path(func(r *road) { r.loss = 0.001 }), ChanceLoss},
		{"loss on four", Settings{First: 4}, path(func(r *road) { r.loss = 0.01 }), ChanceLoss},
		{"loss raw", Settings{First: 4, Share: Raw}, path(func(r *road) { r.loss = 0.01 }), ChanceLoss},
		{"loss on a short path", Settings{First: 2}, path(func(r *road) { r.rtt, r.loss = 10*time.Millisecond, 0.01 }), ChanceLoss},
		{"loss on a fat path", Settings{First: 4}, path(func(r *road) { r.link, r.loss = 5000*mbit, 0.0001 }), ChanceLoss},
		{"loss until there are more connections", Settings{Most: 32}, path(func(r *road) { r.loss = 0.001 }), LinkFull},
		{"limit", Settings{BBR: true, First: 4, Limit: 30 * mbit}, path(all), AtLimit},
		{"limit raw", Settings{BBR: true, First: 4, Limit: 30 * mbit, Share: Raw}, path(all), AtLimit},
		{"limit above the link", Settings{BBR: true, First: 4, Limit: 300 * mbit}, path(all), LinkFull},
		{"send buffer", Settings{BBR: true, First: 4}, path(func(r *road) { r.send = 64 << 10 }), SendBuffer},
		{"receive buffer", Settings{First: 4}, path(func(r *road) { r.take = 64 << 10 }), ReceiveBuffer},
		{"send buffer of cubic", Settings{First: 4}, path(func(r *road) { r.send = 64 << 10 }), SendBuffer},
		{"receive buffer of bbr", Settings{BBR: true, First: 4}, path(func(r *road) { r.take = 64 << 10 }), ReceiveBuffer},
		{"flow limit", Settings{BBR: true, First: 4, Open: 32}, path(func(r *road) { r.police = 2 * mbit }), FlowLimit},
		{"flow limit despite loss", Settings{BBR: true, First: 4, Open: 32}, path(func(r *road) { r.police, r.loss = 2*mbit, 0.01 }), FlowLimit},
		{"flow limit raw", Settings{BBR: true, First: 4, Open: 32, Share: Raw}, path(func(r *road) { r.police = 2 * mbit }), FlowLimit},
		{"flow limit until there are more connections", Settings{BBR: true, First: 4, Open: 32}, path(func(r *road) { r.police = 10 * mbit }), LinkFull},
		{"flow limit of a fixed number", Settings{BBR: true, First: 4, Most: 4, Open: 4}, path(func(r *road) { r.police = 2 * mbit }), NoCause},
		{"shallow queue", Settings{BBR: true, First: 4, Open: 32}, path(func(r *road) { r.buffer = time.Millisecond }), NoCause},
		{"shallow queue beside others", Settings{BBR: true, First: 4, Open: 32}, path(func(r *road) { r.buffer, r.others, r.pushy = time.Millisecond, 4, true }), NoCause},
		{"buffers a little beyond the link", Settings{BBR: true, First: 1}, path(func(r *road) { r.send = 900e3 }), LinkFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, last := causes60(c.settings, c.road)
			file := "testdata/" + strings.ReplaceAll(c.name, " ", "-") + ".causes"
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, []byte(log), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want, err := os.ReadFile(file); err != nil || string(want) != log && runtime.GOARCH == "amd64" { // as in TestPathsAreTuned
				t.Errorf("%v; it is told otherwise (UPDATE=1 writes it):\n%s", err, log)
			}
			if last.Cause != c.want {
				t.Errorf("%q binds in the end, want %q\n%s", last.Cause, c.want, log)
			}
		})
	}
}

// causes60 is a minute on a road: a line for each time at which another cause is told.
func causes60(s Settings, r *road) (log string, v Verdict) {
	var out strings.Builder
	p := NewTuner(s)
	r.begin()
	d := p.Step(Measure{Now: r.now})
	before := NoCause
	for at := time.Duration(0); at < time.Minute; {
		m := r.pass(d, Interval(r.rtt), 1)
		at += m.Length
		d = p.Step(m)
		if v = p.Verdict(); v.Cause != before {
			fmt.Fprintf(&out, "%6.1f s  %q: %.2f of the link, %.3f%% lost, held up for %.2f of the time\n", at.Seconds(), v.Cause, v.Rate/r.link, 100*v.Loss, v.Held)
		}
		before = v.Cause
	}
	return out.String(), v
}

// Where nothing is lost by chance nobody says so, and nobody is told of others, a limit or buffers where there are none: by
// either control, however the path is shared, whatever its queue, and where what is measured is not exact.
func TestNoCauseIsToldThatIsNotThere(t *testing.T) {
	for _, s := range []Settings{{BBR: true, First: 4}, {First: 1}, {First: 4}, {First: 4, Share: Raw}, {BBR: true, Share: Raw}, {First: 4, Share: Full}, {First: 4, Most: 16}} {
		for _, rtt := range []time.Duration{2, 20, 100} {
			for _, buffer := range []time.Duration{20, 50, 200} {
				r := &road{link: 100 * mbit, rtt: rtt * time.Millisecond, buffer: max(buffer*time.Millisecond, rtt*time.Millisecond/4)}
				random := rand.New(rand.NewPCG(1, 2))
				told := told(s, r, 45*time.Second, func(m *Measure) {
					m.RTT += time.Duration(random.Int64N(int64(2 * time.Millisecond)))
					m.Rate *= 0.98 + 0.04*random.Float64()
				})
				for cause, intervals := range told {
					if cause != NoCause && cause != LinkFull || s.Share == Raw && cause != NoCause {
						t.Errorf("%+v, %v there and back, a queue of up to %v: for %d intervals %q is told", s, r.rtt, r.buffer, intervals, cause)
					}
				}
				if s.Share != Raw && 10*told[LinkFull] < 7*(told[LinkFull]+told[NoCause]) {
					t.Errorf("%+v, %v there and back, a queue of up to %v: %v", s, r.rtt, r.buffer, told)
				}
			}
		}
	}
}

// told is for how many intervals each cause is told on a road; blur makes what is measured inexact.
func told(s Settings, r *road, long time.Duration, blur func(m *Measure)) map[Cause]int {
	told := map[Cause]int{}
	p := NewTuner(s)
	r.begin()
	d := p.Step(Measure{Now: r.now})
	for at := time.Duration(0); at < long; at += Interval(r.rtt) {
		m := r.pass(d, Interval(r.rtt), 1)
		blur(&m)
		d = p.Step(m)
		told[p.Verdict().Cause]++
	}
	return told
}

// One interval, or two, are no verdict; what was found holds until another is as sure; a path that does not bind has none.
func TestThreeIntervalsAlikeAreACause(t *testing.T) {
	p := NewTuner(Settings{BBR: true})
	now := time.Unix(0, 0)
	step := func(m Measure) Cause {
		now = now.Add(shortest)
		m.Now, m.Length, m.RTT, m.MinRTT, m.Flows, m.Rate, m.Sent = now, shortest, 10*time.Millisecond, 10*time.Millisecond, 1, 1e6, 200_000
		p.Step(m)
		return p.Verdict().Cause
	}
	send := Measure{Bound: true, Busy: shortest, SendBuffer: shortest}
	receive := Measure{Bound: true, Busy: shortest, ReceiveBuffer: shortest}
	for i, c := range []struct {
		seen Measure
		want Cause
	}{
		{send, NoCause}, {send, NoCause}, {receive, NoCause}, {send, NoCause}, {send, NoCause}, {send, SendBuffer},
		{receive, SendBuffer}, {receive, SendBuffer}, {receive, ReceiveBuffer},
		{Measure{}, ReceiveBuffer}, {Measure{}, ReceiveBuffer}, {Measure{}, NoCause},
	} {
		if got := step(c.seen); got != c.want {
			t.Errorf("interval %d: %q, want %q", i, got, c.want)
		}
	}
}

// A cause has one name, and what no version of here says is none.
func TestCausesAreNamed(t *testing.T) {
	for c := range causes {
		if got := CauseNamed(c.String()); got != c {
			t.Errorf("%d is named %q, which is %d", c, c, got)
		}
	}
	if CauseNamed("what a later version knows") != NoCause || causes.String() != "" {
		t.Error("a cause that is unknown is taken for one")
	}
}
