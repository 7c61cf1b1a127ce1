package emu

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// play sends n packets of size bytes, one every gap, in virtual time, and calls do with each part.
func play(l *Line, n int, size uint32, gap time.Duration, do func(Part)) {
	drain := func(until time.Duration) {
		for p, ok := l.Take(until); ok; p, ok = l.Take(until) {
			do(p)
		}
	}
	for i := range n {
		now := time.Duration(i) * gap
		drain(now)
		l.Send(now, Frame{Bytes: size, Head: size, Count: 1}, Packet{slot: uint32(i), count: 1})
	}
	drain(math.MaxInt64)
}

const million = 1_000_000

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.005*want {
		t.Errorf("%s: %g, asked for %g", what, got, want)
	}
}

func TestAMillionPacketsKeepRateDelayAndLoss(t *testing.T) {
	t.Run("rate", func(t *testing.T) {
		for _, rate := range []uint64{9_999, 1e6, 123_456_789, 1e10} {
			var last time.Duration
			l := NewLine(Params{Rate: rate, Queue: MaxQueue})
			gap := time.Duration(float64(1000*8) / float64(rate) * 0.9e9) // a ninth more than the rate
			play(l, million, 1000, gap, func(p Part) { last = p.Due })
			passed := l.Counters().PassedByte
			near(t, "rate", float64(passed)*8/last.Seconds(), float64(rate))
		}
	})
	t.Run("delay", func(t *testing.T) {
		var sum float64
		const gap = 100 * time.Microsecond
		play(NewLine(Params{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Unordered: true}), million, 100, gap, func(p Part) {
			d := p.Due - time.Duration(p.slot)*gap
			if d < 15*time.Millisecond || d > 25*time.Millisecond {
				t.Fatalf("packet %d: delay %v", p.slot, d)
			}
			sum += d.Seconds()
		})
		near(t, "mean delay", sum/million, 0.020)
	})
	t.Run("loss", func(t *testing.T) {
		for seed := range uint64(3) {
			l := NewLine(Params{Loss: 0.2, BurstLoss: 0.1, Burst: 4, Duplicate: 0.3, Reorder: 0.25, Seed: seed})
			play(l, million, 100, time.Microsecond, func(Part) {})
			c := l.Counters()
			near(t, "duplicated", float64(c.Duplicated)/float64(c.Passed), 0.3*0.75) // those held back are not
			near(t, "reordered", float64(c.Reordered)/float64(c.Passed), 0.25)
			near(t, "lost", float64(c.Lost)/float64(c.Packets-c.LostBurst), 0.2)
			if got := float64(c.LostBurst) / million; math.Abs(got-0.1) > 0.002 {
				t.Errorf("lost in bursts: %g", got)
			}
			if want := l.Params().Predict(million); c.Lost+c.LostBurst != want {
				t.Errorf("lost %d, predicted %d", c.Lost+c.LostBurst, want)
			}
		}
	})
}

func TestBurstsHaveTheirLength(t *testing.T) {
	p := Params{BurstLoss: 0.05, Burst: 10, Seed: 3}
	var l losses
	lost, bursts, before := 0, 0, passes
	for n := range uint64(million) {
		f := l.next(&p, n)
		if f == lostInBurst {
			lost++
			if before == passes {
				bursts++
			}
		}
		before = f
	}
	if mean := float64(lost) / float64(bursts); math.Abs(mean-10) > 0.5 {
		t.Errorf("mean burst of %g packets", mean)
	}
}

// log is a hash over everything that happens in a run.
func eventLog(p Params) uint64 {
	h := fnv.New64a()
	play(NewLine(p), 20000, 1200, 10*time.Microsecond, func(p Part) {
		b := binary.BigEndian.AppendUint64(nil, uint64(p.Due))
		h.Write(binary.BigEndian.AppendUint32(b, p.slot))
	})
	return h.Sum64()
}

func TestTheSameSeedGivesTheSameLog(t *testing.T) {
	p := Params{Rate: 9e8, Delay: 3 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.01, BurstLoss: 0.01, Duplicate: 0.01, Reorder: 0.01, Seed: 42}
	first := eventLog(p)
	if again := eventLog(p); again != first {
		t.Errorf("%x, then %x", first, again)
	}
	p.Seed++
	if other := eventLog(p); other == first {
		t.Error("another seed, the same log")
	}
}

func TestOneParameterDoesNotDisturbTheDrawsOfAnother(t *testing.T) {
	lost := func(p Params) map[uint32]bool {
		arrived := map[uint32]bool{}
		play(NewLine(p), 10000, 100, time.Millisecond, func(p Part) { arrived[p.slot] = true })
		return arrived
	}
	alone := lost(Params{Loss: 0.1, Seed: 5})
	mixed := lost(Params{Loss: 0.1, Seed: 5, Delay: time.Second, Jitter: time.Millisecond, Duplicate: 0.2, Reorder: 0.2, Rate: 1e9})
	if len(alone) != len(mixed) {
		t.Fatalf("%d and %d arrived", len(alone), len(mixed))
	}
	for id := range alone {
		if !mixed[id] {
			t.Fatalf("packet %d arrived in one run only", id)
		}
	}
}

func TestAFullQueueDropsAndEmpties(t *testing.T) {
	l := NewLine(Params{Rate: 8e6, Queue: 10_000}) // a byte in a microsecond
	sent := 0
	for range 20 {
		sent += l.Send(0, Frame{Bytes: 1000, Head: 1000, Count: 1}, Packet{count: 1})
	}
	if sent != 10 || l.Counters().Overflow != 10 {
		t.Errorf("%d in, %d overflowed", sent, l.Counters().Overflow)
	}
	if l.Send(5*time.Millisecond, Frame{Bytes: 1000, Head: 1000, Count: 1}, Packet{count: 1}) != 1 {
		t.Error("no room after half was sent")
	}
}

func TestWhatIsOnItsWayIsNotDisturbed(t *testing.T) {
	l := NewLine(Params{Delay: 50 * time.Millisecond})
	l.Send(0, Frame{Bytes: 100, Head: 100, Count: 1}, Packet{slot: 1, count: 1})
	l.Set(Params{Delay: time.Millisecond, Loss: 1})
	l.Send(0, Frame{Bytes: 100, Head: 100, Count: 1}, Packet{slot: 2, count: 1})
	l.Set(Params{Delay: time.Millisecond})
	l.Send(0, Frame{Bytes: 100, Head: 100, Count: 1}, Packet{slot: 3, count: 1})
	for _, id := range []uint32{1, 3} {
		if p, ok := l.Take(50 * time.Millisecond); !ok || p.slot != id || p.Due != 50*time.Millisecond {
			t.Errorf("%+v, want %d", p, id)
		}
	}
}

// Whatever the parameters, every packet of every frame comes out as often as the counters say, in
// parts that lie inside their frame, in the order of their due times.
func TestPacketsAreAccountedFor(t *testing.T) {
	share := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.6})
	rapid.Check(t, func(t *rapid.T) {
		p := Params{
			Rate: rapid.SampledFrom([]uint64{0, 1e6, 1e9, 1e10}).Draw(t, "rate"), Delay: time.Millisecond,
			Jitter: rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(t, "jitter"), Unordered: rapid.Bool().Draw(t, "unordered"),
			Loss: share.Draw(t, "loss"), BurstLoss: share.Draw(t, "bursts"), Duplicate: share.Draw(t, "twins"), Reorder: share.Draw(t, "late"),
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		l, now, parts := NewLine(p), time.Duration(0), 0
		frames := map[uint32]Frame{}
		for id := range uint32(rapid.IntRange(1, 50).Draw(t, "frames")) {
			f := Frame{Head: 66, Size: 1400, Count: rapid.Uint32Range(1, 45).Draw(t, "count")}
			f.Bytes = f.Head + f.Size*(f.Count-1) + rapid.Uint32Range(1, 1400).Draw(t, "tail")
			frames[id] = f
			parts += l.Send(now, f, Packet{slot: id, count: uint16(f.Count)})
			now += time.Duration(rapid.IntRange(0, 1e6).Draw(t, "gap"))
		}
		var got, last uint64
		for part, ok := l.Take(math.MaxInt64); ok; part, ok = l.Take(math.MaxInt64) {
			parts--
			got += uint64(part.count)
			if uint64(part.Due) < last || part.count == 0 || uint32(part.first+part.count) > frames[part.slot].Count {
				t.Fatalf("part %+v of %+v after %d", part, frames[part.slot], last)
			}
			last = uint64(part.Due)
		}
		c := l.Counters()
		if parts != 0 || got != c.Passed+c.Duplicated || c.Packets != c.Passed+c.Lost+c.LostBurst+c.Overflow {
			t.Fatalf("%d parts too few, %d packets out; %+v", parts, got, c)
		}
	})
}

func TestALineDoesNotAllocate(t *testing.T) {
	l := NewLine(Params{Rate: 1e9, Delay: time.Millisecond, Jitter: time.Millisecond, Unordered: true, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1})
	now := time.Duration(0)
	step := func() {
		now += 20 * time.Microsecond
		l.Send(now, Frame{Bytes: 1500, Head: 1500, Count: 1}, Packet{count: 1})
		for _, ok := l.Take(now); ok; _, ok = l.Take(now) {
		}
	}
	for range 10000 {
		step()
	}
	if n := testing.AllocsPerRun(10000, step); n != 0 {
		t.Errorf("%g allocations per packet", n)
	}
}

func BenchmarkLine(b *testing.B) {
	for name, p := range map[string]Params{"delay": {Delay: 10 * time.Millisecond}, "jitter": {Rate: 1e10, Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Loss: 0.01}} {
		b.Run(name, func(b *testing.B) { play(NewLine(p), b.N, 74, time.Microsecond, func(Part) {}) })
	}
}

// What is decided at once is what would be decided one by one.
func TestWholeTrainsAreSentAsTheirPackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{
			Rate: rapid.SampledFrom([]uint64{0, 1e6, 1e9, 7_777_777_777, 1e10, 1e11}).Draw(t, "rate"), Delay: time.Millisecond,
		}
		if p.Rate > 0 {
			p.Queue = rapid.SampledFrom([]uint64{0, 3000, 1 << 20}).Draw(t, "queue")
		}
		whole, single := NewLine(p), NewLine(p)
		single.sure = false
		now := time.Duration(0)
		for i := range rapid.IntRange(1, 60).Draw(t, "frames") {
			f := Frame{Head: 66, Size: 1400, Count: rapid.SampledFrom([]uint32{1, 1, 2, 45}).Draw(t, "count")}
			f.Bytes = f.Head + f.Size*(f.Count-1) + rapid.Uint32Range(1, 1400).Draw(t, "tail")
			if f.Count == 1 {
				f.Head = f.Bytes
			}
			d := Packet{slot: uint32(i), count: uint16(f.Count)}
			if a, b := whole.Send(now, f, d), single.Send(now, f, d); a != b {
				t.Fatalf("frame %d: %d parts, one by one %d", i, a, b)
			}
			now += time.Duration(rapid.IntRange(0, 100_000).Draw(t, "gap"))
		}
		if whole.Counters() != single.Counters() {
			t.Fatalf("%+v, one by one %+v", whole.Counters(), single.Counters())
		}
		for {
			a, ok := whole.Take(math.MaxInt64)
			b, more := single.Take(math.MaxInt64)
			if ok != more || a != b {
				t.Fatalf("%+v, one by one %+v", a, b)
			}
			if !ok {
				return
			}
		}
	})
}

// With order kept a packet waits for the one before it: the shorter the gaps, the longer the delays.
func TestJitterInOrderLengthensDelays(t *testing.T) {
	median := func(gap time.Duration, unordered bool) time.Duration {
		l := NewLine(Params{Delay: 10 * time.Millisecond, Jitter: 4 * time.Millisecond, Unordered: unordered, Seed: 1})
		var delays []time.Duration
		for i := range 10_000 {
			now := time.Duration(i) * gap
			l.Send(now, Frame{Bytes: 100, Count: 1}, Packet{count: 1, slot: uint32(i)})
		}
		for p, ok := l.Take(math.MaxInt64); ok; p, ok = l.Take(math.MaxInt64) {
			delays = append(delays, p.Due-time.Duration(p.slot)*gap)
		}
		slices.Sort(delays)
		return delays[len(delays)/2].Round(100 * time.Microsecond)
	}
	got := []time.Duration{median(20*time.Millisecond, false), median(time.Millisecond, true), median(time.Millisecond, false), median(100*time.Microsecond, false)}
	want := []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 11400 * time.Microsecond, 13 * time.Millisecond} // docs/emu.md says so
	if !slices.Equal(got, want) {
		t.Errorf("half of the packets take no more than %v, want %v", got, want)
	}
}
