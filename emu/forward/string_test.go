package forward_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

// destinations are 1000 routes, 70 % /48, 20 % /56 and 10 % /64, and 4096 addresses in them.
func destinations(rng *rand.Rand) (routes []forward.Route, to []netip.Addr) {
	for i := range 1000 {
		bits := 48
		switch {
		case i%10 == 9:
			bits = 64
		case i%10 >= 7:
			bits = 56
		}
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], 0x2001_0db8<<32|uint64(rng.Uint32()))
		routes = append(routes, forward.To(netip.PrefixFrom(netip.AddrFrom16(b), bits).Masked(), 1))
	}
	for range 4096 {
		p := routes[rng.IntN(len(routes))].Prefix
		b := p.Addr().As16()
		binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])|rng.Uint64()>>p.Bits())
		binary.BigEndian.PutUint64(b[8:], rng.Uint64()|1)
		to = append(to, netip.AddrFrom16(b))
	}
	return routes, to
}

// A row is a source, routers in a string with wires between, and a sink.
type row struct {
	*emu.Net
	source *traffic.Source
	sink   *traffic.Sink
	first  *emu.Router
}

func newRow(tb testing.TB, n int, class bool) *row {
	net := emu.New(emu.Options{Virtual: true, Memory: emu.Memory{Small: 8192, Large: 1}})
	tb.Cleanup(func() { net.Close() })
	routes, to := destinations(rand.New(rand.NewPCG(1, 2)))
	w := &row{Net: net, sink: &traffic.Sink{},
		source: &traffic.Source{From: addr("fd00::1"), To: to, Size: 74, Gap: time.Microsecond, Burst: 64, Hop: 255}}
	w.first = net.Router("source", w.source)
	last := w.first
	for i := range n {
		f, err := forward.New(forward.Config{})
		if err == nil {
			err = f.SetRoutes(routes)
		}
		if err != nil {
			tb.Fatal(err)
		}
		r := net.Router(fmt.Sprint("r", i), f)
		w.wire(tb, last, r)
		last = r
	}
	w.wire(tb, last, net.Router("sink", w.sink))
	if class {
		if _, err := forward.Compile(net); err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

func (w *row) wire(tb testing.TB, a, b *emu.Router) {
	if _, err := w.Link(a, b, [2]emu.Params{}); err != nil {
		tb.Fatal(err)
	}
}

// pass sends packets from the source to the sink.
func (w *row) pass(tb testing.TB, packets int) {
	w.source.Count, w.source.Sent, w.sink.Packets = uint64(packets), 0, 0
	if err := w.Do(w.first, func() { w.first.Swap(w.source) }); err != nil {
		tb.Fatal(err)
	}
	if err := w.Run(w.Now() + time.Hour); err != nil {
		tb.Fatal(err)
	}
	if w.sink.Packets != uint64(packets) {
		tb.Fatalf("%d of %d packets arrived", w.sink.Packets, packets)
	}
}

// BenchmarkString is what packets of 74 bytes cost at each router of a string, source and sink and counters included.
func BenchmarkString(b *testing.B) {
	for _, mode := range []string{"lpm", "class"} {
		for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				w := newRow(b, n, mode == "class")
				w.pass(b, 1024)
				packets := b.N/n + 1
				b.ResetTimer()
				start := cpu()
				w.pass(b, packets)
				b.ReportMetric(float64(packets*n)*1000/float64(cpu()-start), "Mhops/cpu-s")
			})
		}
	}
}

// cpu is the CPU time of the process in ns. It says more than the clock on a machine with neighbours.
func cpu() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return t.Nano()
}

func TestForwardingAllocatesNothing(t *testing.T) {
	for _, class := range []bool{false, true} {
		w := newRow(t, 4, class)
		w.pass(t, 1024)
		few := testing.AllocsPerRun(10, func() { w.pass(t, 1) })
		if n := testing.AllocsPerRun(10, func() { w.pass(t, 1025) }); n > few {
			t.Errorf("class mode %v: %v allocations for 1024 packets more over four routers", class, n-few)
		}
	}
}
