package router

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// TestSplitByWeights gives 10,000 flows to the program, TCP and UDP.
func TestSplitByWeights(t *testing.T) {
	r := ready(t)
	for _, weights := range [][]uint32{{1, 2, 3}, {1, 1000}} {
		must(t, r.SetTable(webTCP, targets(weights...)), r.SetTable(webUDP, targets(weights...)))
		for _, proto := range []uint8{bpftest.TCP, bpftest.UDP} {
			// As in internal/core/resolve: chance fails one draw of a thousand, a wrong program every draw.
			p := 0.0
			for draw := 0; draw < 3 && p < 0.001; draw++ {
				seed := rand.Uint64()
				counts := split(t, r, proto, rand.New(rand.NewPCG(seed, 0)), len(weights))
				p = chiSquare(counts, weights)
				t.Logf("weights %v protocol %d: %v, seed %d, p = %g", weights, proto, counts, seed, p)
			}
			if p < 0.001 {
				t.Errorf("weights %v, protocol %d: p < 0.001 in three draws of new clients", weights, proto)
			}
		}
	}
}

func split(t *testing.T, r *Resolver, proto uint8, rnd *rand.Rand, n int) []int {
	counts := make([]int, n)
	for range 10000 {
		p := bpftest.Packet{Src: host(900).Addr(uint64(sid.NewSocketID(rnd.Uint64()))), Dst: space.ServiceAddr(web),
			Proto: proto, SPort: uint16(rnd.Uint32()), DPort: 53, Flags: bpftest.SYN}
		if proto == bpftest.TCP {
			p.DPort = 80
		}
		_, dst := bpftest.Addrs(run(t, r, p.Bytes()).Packet)
		counts[int(sid.LocatorOf(dst)-host(0))]++
	}
	return counts
}

// chiSquare is the probability of a split at least as uneven, for two or three targets.
func chiSquare(counts []int, weights []uint32) float64 {
	var sum, all, x float64
	for i, w := range weights {
		sum, all = sum+float64(w), all+float64(counts[i])
	}
	for i, w := range weights {
		want := all * float64(w) / sum
		x += (float64(counts[i]) - want) * (float64(counts[i]) - want) / want
	}
	if len(weights) == 2 {
		return math.Erfc(math.Sqrt(x / 2))
	}
	return math.Exp(-x / 2)
}

func service(i int) sid.ServiceID {
	return sid.ServiceID{SS: 1, Suffix: sid.Suffix(0x7000000000000000 + i)}
}

// fill loads services of ten instances each, with the table for any port beside.
func fill(t *testing.T, r *Resolver, from, to int) {
	for i := from; i < to; i++ {
		ts := targets(100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
		for j := range ts {
			ts[j].Locator += sid.Locator(i % 5000)
		}
		must(t, r.SetService(service(i), Service{Instances: 10}),
			r.SetTable(sid.Triple{Service: service(i), Proto: sid.TCP, Port: 80}, ts), r.SetTable(sid.Triple{Service: service(i)}, ts))
	}
}

// TestTenThousandServices: bounded memory, and a change costs what it costs among ten.
func TestTenThousandServices(t *testing.T) {
	r := open(t, Config{})
	empty, err := r.Usage()
	must(t, err)
	fill(t, r, 0, 10)
	few := change(t, r)
	fill(t, r, 10, 10000)
	if many := change(t, r); many != few {
		t.Errorf("a change costs %d writes among 10,000 services, %d among ten", many, few)
	}
	u, err := r.Usage()
	must(t, err)
	if u.Services != 10000 || u.Instances != 100000 {
		t.Errorf("%+v, want 10,000 services and 100,000 instances", u)
	}
	each := (u.Bytes - empty.Bytes) / uint64(u.Instances)
	t.Logf("%d bytes of kernel memory an instance, %d in all, %d of them before the first", each, u.Bytes, empty.Bytes)
	if each > 300 {
		t.Errorf("%d bytes an instance, want at most 300", each)
	}
}

// change counts the writes of one weight changed and changed back.
func change(t *testing.T, r *Resolver) uint64 {
	triple := sid.Triple{Service: service(3), Proto: sid.TCP, Port: 80}
	before := r.Writes()
	old := targets(100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
	for j := range old {
		old[j].Locator += 3
	}
	now := append([]resolve.Target(nil), old...)
	now[4].Weight = 7
	must(t, r.SetTable(triple, now), r.SetTable(triple, old), r.SetTable(triple, old))
	return r.Writes() - before
}

// TestOneTargetOfManyChangesOnePath of the tree.
func TestOneTargetOfManyChangesOnePath(t *testing.T) {
	r := ready(t)
	ts := make([]resolve.Target, 5000)
	for i := range ts {
		ts[i] = resolve.Target{Locator: host(i), Weight: 100}
	}
	must(t, r.SetTable(webTCP, ts))
	before := r.Writes()
	ts[77].Weight = 50
	must(t, r.SetTable(webTCP, ts))
	if n := r.Writes() - before; n > resolve.MaxDepth {
		t.Errorf("one weight of 5,000 cost %d writes", n)
	}
	must(t, r.SetTable(webTCP, ts[:1]))
	var left int
	var key resolveTableKey
	var node resolveTableNode
	for it := r.objs.Tables.Iterate(); it.Next(&key, &node); {
		if key.Port == 80 {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d nodes left of a table that shrank to one target", left)
	}
}

func BenchmarkResolve(b *testing.B) {
	r, err := Open(Config{Space: space})
	if err != nil {
		b.Skip(err)
	}
	defer r.Close(false)
	must(b, r.SetService(web, Service{Instances: 10}), r.Commit(1), r.SetTable(webTCP, targets(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))
	packet := syn(from, space.ServiceAddr(web), 80).Bytes()
	frame := append(make([]byte, 12, 100), 0x86, 0xdd)
	frame = append(frame, packet...)
	var spent time.Duration // in the program alone, as the kernel says
	n := 0
	for ; b.Loop(); n++ {
		_, d, err := r.objs.Resolve.Benchmark(frame, 1, nil)
		if err != nil {
			b.Fatal(err)
		}
		spent += d
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "ns/packet")
}

// BenchmarkSources is a packet of a bound flow, the program alone: where nobody knows who is where, at a host's port, and at
// a router's. They are measured in turn; of each the least of the rounds counts, for what else runs here only adds.
func BenchmarkSources(b *testing.B) {
	r, err := Open(Config{Space: space})
	if err != nil {
		b.Skip(err)
	}
	defer r.Close(false)
	must(b, r.Commit(1))
	for i := range 1000 { // of others
		must(b, r.SetSource(Source{100 + i%50, host(i)}, true))
	}
	frame := append(make([]byte, 12, 100), 0x86, 0xdd)
	p := syn(from, host(1).Addr(1<<63|7), 80)
	p.Flags = bpftest.ACK
	frame = append(frame, p.Bytes()...)
	own, any := Source{1, sid.LocatorOf(from)}, Source{1, 0}
	kinds := []struct {
		name      string
		filter    bool
		own, link bool
	}{{"unknown", false, false, false}, {"host", true, true, false}, {"router", true, false, true}}
	least := make([]time.Duration, len(kinds))
	for b.Loop() {
		for i, k := range kinds {
			must(b, r.Filter(k.filter), r.SetSource(own, k.own), r.SetSource(any, k.link))
			_, d, err := r.objs.Resolve.Benchmark(frame, 1<<20, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Logf("%s: %v", k.name, d)
			if least[i] == 0 || d < least[i] {
				least[i] = d
			}
		}
	}
	for i, k := range kinds {
		b.ReportMetric(float64(least[i].Nanoseconds()), k.name+"-ns/packet")
	}
}
