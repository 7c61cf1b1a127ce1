package fib

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// sample is the table of the measurements: 70 % /48, 20 % /56, 10 % /64, within 2001:db8::/32 or anywhere.
func sample(rng *rand.Rand, n int, anywhere bool) []Route {
	routes := make([]Route, n)
	for i := range routes {
		bits := 48
		switch {
		case i%10 == 9:
			bits = 64
		case i%10 >= 7:
			bits = 56
		}
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], 0x2001_0db8<<32|uint64(rng.Uint32()))
		if anywhere {
			binary.BigEndian.PutUint64(b[:], rng.Uint64()>>3|1<<61)
		}
		routes[i] = Route{netip.PrefixFrom(netip.AddrFrom16(b), bits).Masked(), Hop(4 + i%60)}
	}
	return routes
}

// within are n addresses in the routes' prefixes.
func within(rng *rand.Rand, routes []Route, n int) [][2]uint64 {
	all := make([][2]uint64, n)
	for i := range all {
		p := routes[rng.IntN(len(routes))].Prefix
		hi, _ := words(p.Addr())
		all[i] = [2]uint64{hi | rng.Uint64()>>p.Bits(), rng.Uint64()}
	}
	return all
}

func loaded(tb testing.TB, routes []Route) *Table {
	t := New()
	if err := t.Load(routes); err != nil {
		tb.Fatal(err)
	}
	return t
}

// cpu is the CPU time of the process in ns. It says more than the clock on a machine with neighbours.
func cpu() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return t.Nano()
}

func report(b *testing.B, start int64) {
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
}

var use Hop // keeps results from being optimized away

func BenchmarkLookup6(b *testing.B) {
	for _, c := range []struct {
		name     string
		routes   int
		anywhere bool
	}{{"1000", 1000, false}, {"1000-anywhere", 1000, true}, {"4000", 4000, false}, {"100000", 100000, false}} {
		b.Run(c.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			routes := sample(rng, c.routes, c.anywhere)
			t := loaded(b, routes)
			to := within(rng, routes, 4096)
			var sum Hop
			b.ResetTimer()
			start := cpu()
			for i := range b.N {
				a := &to[i&4095]
				sum += t.Lookup6(a[0], a[1])
			}
			report(b, start)
			b.ReportMetric(float64(t.Bytes())/float64(t.Len()), "B/route")
			use = sum
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	routes := sample(rand.New(rand.NewPCG(1, 2)), 4000, false)
	slices.SortFunc(routes, func(a, b Route) int { return a.Prefix.Compare(b.Prefix) })
	start := cpu()
	for range b.N {
		loaded(b, routes)
	}
	report(b, start)
}

func BenchmarkChange(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	routes := sample(rng, 4000, false)
	t := loaded(b, routes)
	more := sample(rng, 1000, false)
	b.ResetTimer()
	start := cpu()
	for i := range b.N {
		if r := more[i%1000]; i/1000%2 == 0 {
			_ = t.Set(r.Prefix, r.Hop)
		} else {
			t.Delete(r.Prefix)
		}
	}
	report(b, start)
}
