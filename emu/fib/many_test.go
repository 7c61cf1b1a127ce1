package fib

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkTables looks bursts of 64 addresses up in one table after the other, as a string of routers does.
func BenchmarkTables(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	routes := sample(rng, 1000, false)
	to := within(rng, routes, 4096)
	var keys [4096]Key
	for i, a := range to {
		keys[i] = Key{a[0], a[1]}
	}
	for _, n := range []int{1, 16, 64} {
		var tables []*Table
		for range n {
			tables = append(tables, loaded(b, routes))
		}
		b.Run(fmt.Sprintf("one/%d", n), func(b *testing.B) {
			start := cpu()
			for i := 0; i < b.N; i += 64 {
				t, at := tables[i/64%n], i/64/n*64&4095
				for _, k := range keys[at : at+64] {
					use += t.Lookup6(k.Hi, k.Lo)
				}
			}
			report(b, start)
		})
		b.Run(fmt.Sprintf("all/%d", n), func(b *testing.B) {
			var hops [64]Hop
			start := cpu()
			for i := 0; i < b.N; i += 64 {
				t, at := tables[i/64%n], i/64/n*64&4095
				t.Lookup6All(keys[at:at+64], hops[:])
				use += hops[3]
			}
			report(b, start)
		})
	}
}
