package stripe

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestStreamsAreEqualWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		links := make([]link, rapid.IntRange(1, 5).Draw(t, "connections"))
		for i := range links {
			links[i] = link{
				rate:  rapid.Float64Range(50e3, 20e6).Draw(t, "rate"),
				delay: time.Duration(rapid.IntRange(0, 200).Draw(t, "delay")) * time.Millisecond,
				loss:  rapid.SampledFrom([]float64{0, 0.001, 0.05, 0.3}).Draw(t, "loss"),
			}
		}
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"), rapid.SampledFrom(Strategies).Draw(t, "strategy"), links...)
		w.anyhow = rapid.Bool().Draw(t, "STATE anyhow")
		w.slotSize = rapid.SampledFrom([]int{1000, 4096, 48 << 10}).Draw(t, "slot")
		for range rapid.IntRange(1, 4).Draw(t, "sessions") {
			s := &source{length: rapid.Uint64Range(0, 1000).Draw(t, "length") * rapid.SampledFrom([]uint64{1, 100, 1000}).Draw(t, "times"), cut: rapid.Bool().Draw(t, "cut"), regrets: rapid.Bool().Draw(t, "regrets"),
				grain: rapid.IntRange(100, w.slotSize).Draw(t, "grain"),
				room:  rapid.IntRange(4<<10, 64<<10).Draw(t, "socket")}
			if rapid.Bool().Draw(t, "slow") {
				s.drain = rapid.Float64Range(100e3, 5e6).Draw(t, "drain")
				stop := w.now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "stops")) * time.Millisecond)
				long := time.Duration(rapid.IntRange(0, 8000).Draw(t, "stopped")) * time.Millisecond
				s.paused = func(now time.Time) bool { return now.After(stop) && now.Before(stop.Add(long)) }
			}
			w.add(s)
		}
		for range rapid.IntRange(0, 6).Draw(t, "deaths") {
			at, back := time.Duration(rapid.IntRange(0, 300).Draw(t, "dies")*rapid.IntRange(1, 10).Draw(t, "later")), time.Duration(rapid.IntRange(0, 300).Draw(t, "back"))
			what := rapid.IntRange(0, 5).Draw(t, "what")
			w.after(at*time.Millisecond, func() {
				switch {
				case what < 2:
					w.rebirth(what, back*time.Millisecond)
				case len(w.wires) > 0:
					w.kill(w.wires[w.random.IntN(len(w.wires))], back*time.Millisecond)
				}
			})
		}
		w.run(30 * time.Minute)
		w.settle()
	})
}

// TestAMillionChunks is the same for long: eight sessions over eight lossy connections that die again and again, as do
// the workers at both sides. It is one run, the same each time; a long run makes ten, of ten million each. The race
// detector, which has nothing to find where there is no goroutine, gets a tenth.
func TestAMillionChunks(t *testing.T) {
	if raced {
		thousands(t, 100, 1)
		return
	}
	thousands(t, 1000, 1)
	if nstest.Long() {
		for seed := range uint64(10) {
			thousands(t, 10_000, 2+seed)
		}
	}
}

func thousands(t *testing.T, n int, seed uint64) {
	var links []link
	for i := range 8 {
		links = append(links, link{rate: float64(1+i) * 1e6, delay: time.Duration(5+5*i) * time.Millisecond, loss: 0.001})
	}
	w := newWorld(t, seed, "pull", links...)
	w.slotSize = 128
	for i := range 8 {
		s := &source{length: uint64(n) * 1e3 / 8 * 128}
		if i%4 == 0 {
			s.drain = 5e6
		}
		w.add(s)
	}
	var die func()
	turn := 0
	die = func() {
		switch turn++; {
		case turn%5 == 0:
			w.rebirth(turn/5%2, 10*time.Millisecond)
		case len(w.wires) > 0:
			w.kill(w.wires[w.random.IntN(len(w.wires))], 50*time.Millisecond)
		}
		w.after(300*time.Millisecond, die)
	}
	w.after(300*time.Millisecond, die)
	w.run(time.Duration(n) * time.Hour)
	w.settle()
	if w.chunks < n*1e3 {
		t.Errorf("%d chunks were sent, want %d thousand", w.chunks, n)
	}
	t.Logf("%d chunks, %d deaths, %v of virtual time, %+v", w.chunks, turn, w.now.Sub(time.Unix(0, 0)), w.sender.Counts)
}
