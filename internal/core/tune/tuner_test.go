package tune

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A road is a path as a fluid: what connections of a congestion control carry over it, and the queue that they make. It
// knows no packets, only what each control is known to do: BBR takes what the link has and holds a round trip in its queue,
// CUBIC fills the queue where nothing is lost by chance, and stays at what chance leaves it where something is.
type road struct {
	link   float64       // bytes a second
	rtt    time.Duration // there and back, without a queue
	buffer time.Duration
	loss   float64 // by chance
	others int     // CUBIC flows beside us

	now   time.Time
	queue time.Duration
}

const mss = 1448

// pass is an interval under a decision.
func (r *road) pass(d Decision, in time.Duration, sessions int) Measure {
	r.now = r.now.Add(in)
	want, stands := math.Inf(1), r.rtt // of BBR, a round trip stands in the queue
	if d.Control == "cubic" {
		stands = r.buffer * 8 / 10
	}
	if d.Control == "cubic" && r.loss > 0 {
		want = float64(d.Connections) * 1.22 * mss / r.rtt.Seconds() / math.Sqrt(r.loss)
		stands = time.Duration((want/r.link - 1) * float64(r.rtt)) // what makes them as slow as the link
	}
	share := r.link
	if r.others > 0 {
		mine := float64(d.Connections)
		if d.Control == "bbr" {
			mine = 4 * float64(r.others) // as it was measured beside 8 of them
		}
		share *= mine / (mine + float64(r.others))
	}
	switch {
	case r.others > 0:
		r.queue = r.buffer * 8 / 10
	case d.Cap > 0 && d.Cap <= want:
		r.queue += time.Duration((d.Cap/r.link - 1) * float64(in))
		r.queue = min(r.queue, stands)
	default:
		r.queue = stands
	}
	r.queue = min(max(r.queue, 0), r.buffer)
	if d.Cap > 0 {
		want = min(want, d.Cap)
	}
	rate := min(want, share)
	sent := uint64(rate * in.Seconds())
	return Measure{Now: r.now, Length: in, Flows: d.Connections, RTT: r.rtt + r.queue, MinRTT: r.rtt, Rate: rate * (1 - r.loss), Sent: sent, Resent: uint64(float64(sent) * r.loss), Bound: true, Sessions: sessions}
}

// A ride is a tuner on a road for some time; change is called before each interval.
func ride(s Settings, r *road, long time.Duration, change func(at time.Duration, r *road)) (log string, rates []float64, queues []time.Duration, last Decision) {
	var out strings.Builder
	t := NewTuner(s)
	r.now = time.Unix(0, 0)
	d := t.Step(Measure{Now: r.now})
	before, shaped := Decision{}, 0 // how a queue is kept short shows in the first intervals
	for at := time.Duration(0); at < long; {
		if change != nil {
			change(at, r)
		}
		in := Interval(r.rtt)
		m := r.pass(d, in, 1)
		rates, queues = append(rates, m.Rate/r.link), append(queues, r.queue)
		at += in
		d = t.Step(m)
		shaped++
		if d.Control != before.Control || d.Connections != before.Connections || d.Why != before.Why && shaped < 20 {
			fmt.Fprintf(&out, "%6.1f s  %.2f of the link, queue %4.1f ms > %s, %d, cap %.2f, %v\n", at.Seconds(), m.Rate/r.link, r.queue.Seconds()*1000, d.Control, d.Connections, d.Cap/r.link, d.Why)
		}
		before = d
	}
	return out.String(), rates, queues, d
}

func median[T float64 | time.Duration](all []T) T {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}

const mbit = 1e6 / 8

// Each ride is written down whole, and what it comes to is asked of it: a change of the tuner shows in the files.
func TestPathsAreTuned(t *testing.T) {
	long := func() *road {
		return &road{link: 500 * mbit, rtt: 50 * time.Millisecond, buffer: 50 * time.Millisecond}
	}
	short := func() *road {
		return &road{link: 100 * mbit, rtt: 20 * time.Millisecond, buffer: 50 * time.Millisecond}
	}
	lossy := func(r *road, loss float64) *road { r.loss = loss; return r }
	beside := func(r *road) *road { r.others = 8; return r }
	for _, c := range []struct {
		name     string
		settings Settings
		road     *road
		long     time.Duration
		change   func(at time.Duration, r *road)
		rate     [2]float64       // of the link, in the second half: median at least, at most
		queue    time.Duration    // at most, the same
		counts   func(n int) bool // connections in the end
	}{
		{"bbr alone", Settings{BBR: true, Most: 32}, lossy(long(), 0.001), time.Minute, nil, [2]float64{0.98, 1}, 15 * time.Millisecond, func(n int) bool { return n == 1 }},
		{"bbr alone, more loss", Settings{BBR: true, Most: 32}, lossy(long(), 0.01), time.Minute, nil, [2]float64{0.975, 1}, 15 * time.Millisecond, func(n int) bool { return n == 1 }},
		{"bbr alone, raw", Settings{BBR: true, Share: Raw}, lossy(long(), 0.001), time.Minute, nil, [2]float64{0.98, 1}, 50 * time.Millisecond, func(n int) bool { return n == 1 }},
		{"cubic, no loss", Settings{Most: 32}, short(), 5 * time.Minute, nil, [2]float64{0.98, 1}, 15 * time.Millisecond, func(n int) bool { return n == 1 }},
		{"cubic, loss", Settings{Most: 32}, lossy(short(), 0.001), 5 * time.Minute, nil, [2]float64{0.9, 1}, 15 * time.Millisecond, func(n int) bool { return n >= 4 && n <= 8 }},
		{"cubic, more loss", Settings{Most: 32}, lossy(short(), 0.001), 5 * time.Minute, func(at time.Duration, r *road) {
			if at > 2*time.Minute {
				r.loss = 0.01
			}
		}, [2]float64{0.9, 1}, 15 * time.Millisecond, func(n int) bool { return n >= 12 }},
		{"bbr beside others, fair", Settings{BBR: true, Most: 32}, beside(long()), time.Minute, nil, [2]float64{0.05, 0.25}, 50 * time.Millisecond, func(int) bool { return true }},
		{"bbr beside others, of weight 2", Settings{BBR: true, Most: 32, Weight: 2}, beside(long()), time.Minute, nil, [2]float64{0.15, 0.25}, 50 * time.Millisecond, func(int) bool { return true }},
		{"bbr beside others, full", Settings{BBR: true, Most: 32, Share: Full}, beside(long()), time.Minute, nil, [2]float64{0.7, 0.8}, 50 * time.Millisecond, func(int) bool { return true }},
		{"bbr beside others, yield", Settings{BBR: true, Most: 32, Share: Yield}, beside(long()), time.Minute, nil, [2]float64{0, 0.12}, 50 * time.Millisecond, func(int) bool { return true }},
		{"bbr, others go", Settings{BBR: true, Most: 32}, beside(long()), 2 * time.Minute, func(at time.Duration, r *road) {
			if at > 40*time.Second {
				r.others = 0
			}
		}, [2]float64{0.98, 1}, 15 * time.Millisecond, func(n int) bool { return n == 1 }},
		{"limited", Settings{BBR: true, Limit: 50 * mbit}, long(), time.Minute, nil, [2]float64{0.1, 0.1}, 0, func(int) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, rates, queues, last := ride(c.settings, c.road, c.long, c.change)
			file := "testdata/" + strings.ReplaceAll(strings.ReplaceAll(c.name, ",", ""), " ", "-") + ".ride"
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, []byte(log), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want, err := os.ReadFile(file); err != nil || string(want) != log {
				t.Errorf("%v; the ride is another one (UPDATE=1 writes it):\n%s", err, log)
			}
			half := len(rates) / 2
			rate, queue := median(rates[half:]), median(queues[half:])
			if rate < c.rate[0]-1e-9 || rate > c.rate[1]+1e-9 || queue > c.queue || !c.counts(last.Connections) {
				t.Errorf("%.3f of the link, queue %v, %d connections in the end\n%s", rate, queue, last.Connections, log)
			}
		})
	}
}

// A path that was shared and then not used has no cap when somebody comes.
func TestAnIdlePathIsForgotten(t *testing.T) {
	p := NewTuner(Settings{BBR: true})
	now := time.Unix(0, 0)
	step := func(m Measure) Decision {
		now = now.Add(shortest)
		m.Now, m.MinRTT = now, 10*time.Millisecond
		return p.Step(m)
	}
	long := Measure{RTT: 60 * time.Millisecond, Rate: 1e8, Bound: true}
	if d := step(long); d.Cap != 0 {
		t.Fatalf("one interval with a long queue: %+v", d)
	}
	if d := step(long); d.Cap == 0 || d.Why != Drains {
		t.Fatalf("a long queue: %+v", d)
	}
	for i := range idle {
		if d := step(Measure{RTT: 10 * time.Millisecond}); (d.Cap == 0) != (i == idle-1) {
			t.Errorf("after %d intervals without use: %+v", i+1, d)
		}
	}
}

// Where others go the link is full again within seconds, from however little it was.
func TestALinkThatOthersLeaveIsFullSoon(t *testing.T) {
	r := &road{link: 500 * mbit, rtt: 50 * time.Millisecond, buffer: 50 * time.Millisecond, now: time.Unix(0, 0)}
	p := NewTuner(Settings{BBR: true})
	p.cap = r.link / 20
	d := Decision{Control: "bbr", Connections: 1, Cap: p.cap}
	for at := time.Duration(0); at < 10*time.Second; at += Interval(r.rtt) {
		m := r.pass(d, Interval(r.rtt), 1)
		if m.Rate > 0.95*r.link {
			t.Logf("full after %v", at)
			return
		}
		d = p.Step(m)
	}
	t.Errorf("after 10 s it has a cap of %.2f of the link", d.Cap/r.link)
}

// What was measured next to nothing, for whatever reason, caps nobody to next to nothing: not by a long queue, nor behind
// others' time, nor where it yields.
func TestNoCapIsNextToNothing(t *testing.T) {
	for _, share := range []Share{Fair, Full, Yield} {
		p := NewTuner(Settings{BBR: true, Share: share, First: 4})
		now := time.Unix(0, 0)
		for i := range 500 {
			now = now.Add(shortest)
			d := p.Step(Measure{Now: now, Length: shortest, RTT: 60 * time.Millisecond, MinRTT: 20 * time.Millisecond, Rate: 100, Flows: 4, Bound: i%3 != 0, Sessions: 1})
			if d.Cap > 0 && d.Cap < 10*1448/0.020 {
				t.Fatalf("%s: interval %d: %+v", Shares[share], i, d)
			}
		}
	}
}
