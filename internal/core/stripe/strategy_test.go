package stripe

import (
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// transfer is how long one stream takes over connections, and what happens meanwhile.
func transfer(t *testing.T, strategy string, length uint64, meanwhile func(w *world), links ...link) (*world, time.Duration) {
	t.Helper()
	w := newWorld(t, 1, strategy, links...)
	w.slotSize = MinChunk
	w.add(&source{length: length, room: 4 << 20})
	if meanwhile != nil {
		meanwhile(w)
	}
	w.run(time.Hour)
	w.settle()
	return w, w.now.Sub(time.Unix(0, 0))
}

func TestPullFillsAllConnections(t *testing.T) {
	links := []link{{rate: 1e6, delay: 10 * ms}, {rate: 2e6, delay: 10 * ms}, {rate: 5e6, delay: 20 * ms}, {rate: 10e6, delay: 15 * ms}}
	sum := 0.0
	for _, l := range links {
		sum += l.rate
	}
	const length = 20e6
	w := newWorld(t, 1, "pull", links...)
	w.slotSize = MinChunk
	s := &source{length: length, room: 4 << 20}
	w.add(s)
	for s.got < length/4 { // until the window is as large as the path
		w.pump()
		w.step()
	}
	from, got := w.now, s.got
	w.run(time.Hour)
	if rate := float64(length-got) / w.now.Sub(from).Seconds(); rate < 0.98*sum {
		t.Errorf("%.2f MB/s over connections that carry %.2f, want 0.98 of it", rate/1e6, sum/1e6)
	}
}

func TestRedundantSurvivesTheDeathOfAnyConnectionWithoutWaiting(t *testing.T) {
	l := link{rate: 5e6, delay: 20 * ms}
	_, alone := transfer(t, "redundant", 1e6, nil, l)
	for dies := range 2 {
		for at := 5 * ms; at < alone; at += 30 * ms {
			w, both := transfer(t, "redundant", 1e6, func(w *world) {
				c := w.wires[dies]
				w.after(at, func() { w.kill(c, -1) })
			}, l, l)
			// No chunk waits for the news of the death. STATE may: it is said again, and takes one way.
			if both > alone+l.delay || w.sender.Counts.Again != 0 {
				t.Errorf("connection %d of two died after %v: the stream took %v, over the other one alone %v (%+v)", dies, at, both, alone, w.sender.Counts)
			}
		}
	}
	w, _ := transfer(t, "redundant", 1e6, nil, l, l)
	if c := w.sender.Counts; c.Copy < c.First*9/10 || c.Copy > c.First {
		t.Errorf("%+v: want a copy of nearly each chunk, and no third one", c)
	}
}

func TestECFLeavesTheEndToTheFastPath(t *testing.T) {
	fast, slow := link{rate: 5e6, delay: 10 * ms}, link{rate: 5e6, delay: 100 * ms}
	for _, length := range []uint64{50e3, 300e3, 1e6} {
		_, alone := transfer(t, "ecf", length, nil, fast)
		w, both := transfer(t, "ecf", length, nil, fast, slow)
		if both > alone*102/100 {
			t.Errorf("%d bytes took %v over two paths, over the fast one alone %v (%+v)", length, both, alone, w.sender.Counts)
		}
	}
	const long = 8e6 // here the slow path brings something
	_, alone := transfer(t, "ecf", long, nil, fast)
	if _, both := transfer(t, "ecf", long, nil, fast, slow); both > alone*3/4 {
		t.Errorf("%v bytes took %v over two paths, over the fast one alone %v", long, both, alone)
	}
}

// A fast path that stalls without dying does not keep the slow one from taking over.
func TestECFWaitsForNobodyForEver(t *testing.T) {
	_, took := transfer(t, "ecf", 1e6, func(w *world) {
		fast := w.wires[0]
		w.after(30*ms, func() { fast.rate = 1 }) // and TCP_INFO does not say so
		w.after(20*time.Second, func() { w.kill(fast, -1) })
	}, link{rate: 10e6, delay: 5 * ms}, link{rate: 1e6, delay: 50 * ms})
	if took > 25*time.Second {
		t.Errorf("it took %v", took)
	}
}

// shares are the parts of all bytes that each connection brought.
func shares(w *world) (parts []float64) {
	sum := 0
	for _, c := range w.wires {
		sum += c.delivered
	}
	for _, c := range w.wires {
		parts = append(parts, float64(c.delivered)/float64(sum))
	}
	return parts
}

func TestWeightedSharesByWeight(t *testing.T) {
	l := link{rate: 5e6, delay: 10 * ms}
	w, _ := transfer(t, "weighted", 10e6, func(w *world) {
		for i, c := range w.wires {
			w.sender.Measure(c.id, Measure{RTT: 20 * ms, Rate: c.rate, Weight: float64(1 + i)})
		}
	}, l, l, l)
	for i, part := range shares(w) {
		if want := float64(1+i) / 6; part < 0.97*want || part > 1.03*want {
			t.Errorf("connection %d of weight %d brought %.3f of the bytes, want %.3f", i, 1+i, part, want)
		}
	}
}

func TestRoundRobinGivesEachOneTheSame(t *testing.T) {
	w, _ := transfer(t, "rr", 3e6, nil, link{rate: 10e6, delay: 10 * ms}, link{rate: 2e6, delay: 10 * ms})
	if parts := shares(w); parts[0] < 0.45 || parts[0] > 0.55 {
		t.Errorf("they brought %.2f of the bytes", parts)
	}
}

func TestAStalledConnectionHoldsNothingUp(t *testing.T) {
	l := link{rate: 5e6, delay: 10 * ms}
	w, took := transfer(t, "pull", 20e6, func(w *world) {
		w.after(time.Second, func() { w.wires[0].delay = time.Minute })
	}, l, l, l)
	if took > 6*time.Second { // what is on it would be there after a minute
		t.Errorf("it took %v (%+v)", took, w.sender.Counts)
	}
	if w.sender.Counts.Late == 0 {
		t.Errorf("%+v: nothing was sent again", w.sender.Counts)
	}
}

func TestAtMostOneByteInTwentyIsSentAgainForBeingLate(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, seed, "pull", link{rate: 1e6, delay: 20 * ms, loss: 0.2}, link{rate: 3e6, delay: 5 * ms, loss: 0.05}, link{rate: 9e6, delay: 40 * ms})
		w.add(&source{length: 2e6})
		w.run(time.Hour)
		if c := w.sender.Counts; c.Late*20 > c.First || c.Again != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// On paths that lose nothing no chunk goes out twice.
func TestNothingIsSentTwiceForNothing(t *testing.T) {
	l := link{rate: 5e6, delay: 25 * ms}
	if w, _ := transfer(t, "pull", 10e6, nil, l, l, l, l); w.sender.Counts.Late != 0 {
		t.Errorf("%+v", w.sender.Counts)
	}
}

// A connection that rests holds nothing up: no strategy leaves a chunk to it, no end waits for it to be quick, and what it
// carried when it came to rest is sent again where it is late. Once it takes its part again it has nothing to catch up with.
func TestNothingIsLeftToAConnectionThatRests(t *testing.T) {
	fast, slow := link{rate: 20e6, delay: 5 * ms}, link{rate: 5e6, delay: 50 * ms}
	for _, strategy := range Strategies {
		t.Run(strategy, func(t *testing.T) {
			_, alone := transfer(t, strategy, 3e6, nil, slow)
			w, took := transfer(t, strategy, 3e6, func(w *world) {
				w.sender.Rest(w.wires[0].id, true)
				w.sender.Rest(w.wires[2].id, true)
			}, fast, slow, fast)
			// Copies that are to go out in any case come over them: then the stream may be earlier.
			if took > alone*102/100 || strategy != "redundant" && w.wires[0].delivered+w.wires[2].delivered > 0 {
				t.Errorf("with others that rest it took %v, alone %v (%+v)", took, alone, w.sender.Counts)
			}
			w, _ = transfer(t, strategy, 3e6, func(w *world) {
				w.after(100*ms, func() { w.sender.Rest(w.wires[0].id, true) })
				w.after(150*ms, func() { w.wires[0].delay = time.Minute })
				w.after(300*ms, func() { w.sender.Rest(w.wires[0].id, false) })
				w.after(310*ms, func() { w.kill(w.wires[0], -1) })
			}, fast, slow, slow)
			if c := w.sender.Counts; c.First != 3e6 {
				t.Errorf("%+v", c)
			}
		})
	}
	w, _ := transfer(t, "weighted", 10e6, func(w *world) {
		w.sender.Rest(w.wires[0].id, true)
		w.after(500*ms, func() {
			w.sender.Rest(w.wires[0].id, false)
			for _, c := range w.wires {
				c.delivered = 0
			}
		})
	}, slow, slow)
	for i, part := range shares(w) {
		if part < 0.45 || part > 0.55 {
			t.Errorf("connection %d has brought %.2f of what came after the rest of one", i, part)
		}
	}
}

func TestAnUnknownStrategyIsNamed(t *testing.T) {
	if _, err := StrategyNamed("fast"); err == nil || !strings.Contains(err.Error(), `"fast" is no strategy: choose one of [pull ecf weighted rr redundant]`) {
		t.Error(err)
	}
}

func TestChunksAreTwoMillisecondsOfRate(t *testing.T) {
	for rate, want := range map[float64]int{0: 16 << 10, 1e6: 16 << 10, 60e6: 120e3, 3e9: 1 << 20} {
		if got := Size(rate); got != want {
			t.Errorf("%v bytes a second: chunks of %d, want %d", rate, got, want)
		}
	}
}
