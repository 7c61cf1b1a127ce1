package emu_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// along passes packets from each port to the next one, as a wire would.
type along struct{ seen uint64 }

func (a *along) Process(_ *emu.Router, batch []emu.Packet) {
	for i := range batch {
		a.seen += uint64(batch[i].Count())
		batch[i].Hop--
		batch[i].Port ^= 1
	}
}

// A chain is a source, n routers and a sink, in virtual time.
type chain struct {
	*emu.Net
	source *traffic.Source
	sink   *traffic.Sink
	middle []*emu.Router
}

func newChain(t testing.TB, n int, p emu.Params, program func() emu.Program) *chain {
	t.Helper()
	c := &chain{Net: emu.New(emu.Options{Virtual: true, Log: t.Logf}), sink: &traffic.Sink{}}
	c.source = &traffic.Source{From: netip.MustParseAddr("fd00::1"), To: []netip.Addr{netip.MustParseAddr("fd01::1")}, Size: 74, Gap: time.Microsecond}
	last := c.Router("source", c.source)
	for i := range n + 1 {
		next := c.Router("sink", c.sink)
		if i < n {
			next = c.Router(fmt.Sprint("r", i), program())
			c.middle = append(c.middle, next)
		}
		p.Seed = uint64(i)
		if _, err := c.Link(last, next, [2]emu.Params{p, p}); err != nil {
			t.Fatal(err)
		}
		last = next
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func wire() emu.Program { return &along{} }

func (c *chain) run(t testing.TB, until time.Duration) {
	t.Helper()
	if err := c.Run(until); err != nil {
		t.Fatal(err)
	}
}

func TestEveryPacketCrossesTheChain(t *testing.T) {
	for name, p := range map[string]emu.Params{"wires": {}, "delays": {Delay: time.Millisecond, Rate: 1e9}} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, 7, p, wire)
			c.source.Count, c.source.Burst = 10_000, 10
			c.run(t, time.Second)
			if c.sink.Packets != 10_000 {
				t.Errorf("%d of 10000 arrived", c.sink.Packets)
			}
			if p.Delay > 0 {
				sent := 8 * (60 + 14) * time.Nanosecond // at 1 Gbit/s
				if want := 8 * (p.Delay + sent); c.sink.First != want {
					t.Errorf("the first arrived after %v, want %v", c.sink.First, want)
				}
			}
			for _, r := range c.middle {
				if seen := r.Program().(*along).seen; seen != 10_000 {
					t.Errorf("%s saw %d packets", r.Name(), seen)
				}
			}
		})
	}
}

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	sum := func(seed uint64) uint64 {
		c := newChain(t, 5, emu.Params{Delay: time.Millisecond, Jitter: time.Millisecond, Unordered: true, Loss: 0.1, Duplicate: 0.1}, wire)
		c.source.Count, c.source.Hop = 2000, uint8(seed)
		c.Trace()
		c.run(t, time.Second)
		got, err := c.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if a, b, other := sum(64), sum(64), sum(63); a != b || a == other {
		t.Errorf("traces %x and %x of the same, %x of another", a, b, other)
	}
}

func TestARouterThatWasStoppedGoesOn(t *testing.T) {
	c := newChain(t, 1, emu.Params{}, wire)
	source := c.Routers()[0]
	for _, stop := range []bool{true, false} {
		c.run(t, c.Now()+time.Millisecond)
		if err := c.Do(source, func() { source.SetDown(stop) }); err != nil {
			t.Fatal(err)
		}
		before := c.sink.Packets
		c.run(t, c.Now()+time.Millisecond)
		if went := c.sink.Packets > before; went == stop {
			t.Errorf("stopped %v: %d packets in a millisecond", stop, c.sink.Packets-before)
		}
	}
}

// bomb panics at a packet.
type bomb struct{ along }

func (b *bomb) Process(r *emu.Router, batch []emu.Packet) {
	b.along.Process(r, batch)
	if b.seen >= 100 {
		panic("too many")
	}
}

func TestAProgramThatPanicsStopsItsRouterOnly(t *testing.T) {
	c := newChain(t, 3, emu.Params{Delay: time.Millisecond}, wire)
	bad := c.middle[1]
	bad.Swap(&bomb{})
	c.source.Count = 1000
	c.run(t, time.Second)
	if bad.Failure() == nil || !strings.Contains(bad.Failure().Error(), "router r1 panicked: too many") {
		t.Errorf("failure: %v", bad.Failure())
	}
	if seen := c.middle[0].Program().(*along).seen; seen != 1000 || c.sink.Packets != 99 {
		t.Errorf("before it %d packets, behind it %d", seen, c.sink.Packets)
	}
	c.source.Count += 500
	bad.Swap(wire())
	c.Routers()[0].Swap(c.source) // it had come to its end
	c.run(t, 2*time.Second)
	if c.sink.Packets != 599 {
		t.Errorf("%d packets arrived after the program was replaced", c.sink.Packets)
	}
}

func TestALinkThatIsDownLosesEverything(t *testing.T) {
	c := newChain(t, 2, emu.Params{Delay: time.Millisecond}, wire)
	c.source.Count, c.source.Gap = 100, 100*time.Microsecond
	c.run(t, 5*time.Millisecond)
	link := c.Links()[1]
	link.SetUp([2]bool{false, true})
	c.run(t, time.Second)
	stats, err := link.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if c.sink.Packets+stats[0].Cut != 100 || stats[0].Cut == 0 || stats[1].Cut != 0 {
		t.Errorf("%d arrived, %d met the link down", c.sink.Packets, stats[0].Cut)
	}
}

func TestWatchersSeeWhatArrives(t *testing.T) {
	c := newChain(t, 1, emu.Params{Delay: time.Millisecond, Loss: 0.5}, wire)
	c.source.Count = 1000
	seen := 0
	if err := c.Run(0); err != nil {
		t.Fatal(err)
	}
	stop, err := c.Links()[1].Watch(func(from int, at time.Duration, frame []byte) {
		if seen++; from != 0 || len(frame) != 74 || frame[14+7] != 63 {
			t.Fatalf("from %d at %v: % x", from, at, frame)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.run(t, time.Second)
	if seen == 0 || uint64(seen) != c.sink.Packets {
		t.Errorf("%d seen, %d arrived", seen, c.sink.Packets)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestPacketsOfAChainAllocateNothing(t *testing.T) {
	c := newChain(t, 8, emu.Params{Delay: time.Millisecond, Loss: 0.01}, wire)
	now := 100 * time.Millisecond
	c.run(t, now)
	if n := testing.AllocsPerRun(100, func() {
		now += time.Millisecond
		c.run(t, now)
	}); n != 0 {
		t.Errorf("%g allocations in a millisecond of 1000 packets", n)
	}
}

func BenchmarkChain(b *testing.B) {
	for _, kind := range []string{"wires", "links"} {
		for _, n := range []int{1, 16, 64} {
			b.Run(fmt.Sprint(kind, "/", n), func(b *testing.B) {
				p := emu.Params{}
				if kind == "links" {
					p.Delay = time.Millisecond
				}
				c := newChain(b, n, p, wire)
				c.source.Burst, c.source.Gap = 64, 64*100*time.Nanosecond
				b.ResetTimer()
				c.source.Count = uint64(b.N)
				if err := c.Run(time.Duration(b.N)*100 + time.Second); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds()/1e6, "Mhops/s")
			})
		}
	}
}
