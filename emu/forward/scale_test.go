package forward_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
)

// Routers on a ring, each with a route to each other one.
func BenchmarkRoutes(b *testing.B) {
	for _, n := range []int{1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				ring(b, n)
			}
		})
	}
}

func ring(b *testing.B, n int) {
	net := emu.New(emu.Options{Virtual: true, Memory: emu.Memory{Small: 1 << 10, Large: 8}})
	defer net.Close()
	own := make([]netip.Prefix, n)
	for i := range own {
		own[i] = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 6: byte(i >> 8), 7: byte(i)}), 64)
	}
	all := make([]*forward.Forwarder, n)
	routes := make([]forward.Route, 0, n)
	ports := [2][]forward.NextHop{{{Port: 0}}, {{Port: 1}}}
	for i := range all {
		f, err := forward.New(forward.Config{Addresses: []netip.Addr{own[i].Addr().Next()}})
		must(b, err)
		routes = routes[:0]
		for j, p := range own {
			routes = append(routes, forward.Route{Prefix: p, Hops: ports[(j+n-i)%n*2/n]})
		}
		must(b, f.SetRoutes(routes))
		all[i] = f
		net.Router(fmt.Sprint(i), f)
	}
	for i, r := range net.Routers() {
		_, err := net.Link(r, net.Routers()[(i+1)%n], [2]emu.Params{})
		must(b, err)
	}
	must(b, net.Run(0))
	start := memory()
	c, err := forward.Compile(net)
	must(b, err)
	b.ReportMetric(float64(start)/float64(n*n), "B/route")
	b.ReportMetric(float64(memory()-start)/float64(n*n), "B/route-of-classes")
	b.ReportMetric(float64(c.Len()), "classes")
	runtime.KeepAlive(all)
}

func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
