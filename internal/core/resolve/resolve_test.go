package resolve

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
)

// table builds the table of targets base+1, base+2, ... with the given weights.
func table(t interface{ Fatal(...any) }, weights ...uint32) Table {
	targets := make([]Target, len(weights))
	for i, w := range weights {
		targets[i] = Target{Locator: loc(i), Weight: w}
	}
	tab, err := New(targets)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func loc(i int) sid.Locator { return sid.DefaultSpace().Locator(uint16(0x101 + i)) }

// client is a source address as host edges make them: a locator and a random socketID.
func client(r *rand.Rand) netip.Addr {
	return sid.DefaultSpace().Locator(uint16(0x201 + r.IntN(4))).Addr(uint64(sid.NewSocketID(r.Uint64())))
}

// TestVectors fixes the hash of docs/protocol.md §3.2: a change here is a change of the protocol.
func TestVectors(t *testing.T) {
	src := netip.MustParseAddr("fd5d:0:1:102:8000:1234:5678:9abc")
	for retry, want := range []uint64{0x5f785ad73b645437, 0x68ff6cef40599ceb, 0x2c0488d09395a65e, 0xe8ea865effa1220b} {
		if got := Hash(src, uint8(retry)); got != want {
			t.Errorf("Hash(%v, %d) = %#x, want %#x", src, retry, got, want)
		}
	}
	for h, want := range map[uint64]uint64{0: 64 << 32, 1: 64 << 32, 1 << 63: 1 << 32, math.MaxUint64: 1} {
		if got := cost(h); got != want {
			t.Errorf("cost(%#x) = %#x, want %#x", h, got, want)
		}
	}
}

func TestCostIsTheLogarithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.Uint64Range(1, 1<<64-1<<20).Draw(t, "h")
		want := -math.Log2(float64(h)/(1<<64)) * (1 << 32)
		if got := float64(cost(h)); math.Abs(got-want) > want/4000+2 {
			t.Fatalf("cost(%#x) = %v, want %v", h, got, want)
		}
	})
}

// TestGeneratedTables compares the kernel's table of logarithms with ours.
func TestGeneratedTables(t *testing.T) {
	number := regexp.MustCompile(`0x[0-9a-f]{8}`)
	c, err := os.ReadFile("../../bpf/router/log2.h")
	if err != nil {
		t.Fatal(err)
	}
	g, err := os.ReadFile("log2_table.go")
	if err != nil {
		t.Fatal(err)
	}
	inC, inGo := number.FindAllString(string(c), -1), number.FindAllString(string(g), -1)
	if len(inC) != 1025 || strings.Join(inC, ",") != strings.Join(inGo, ",") {
		t.Error("internal/bpf/router/log2.h and log2_table.go differ: run go generate ./internal/core/resolve")
	}
}

func TestSplitFollowsTheWeights(t *testing.T) {
	many := make([]uint32, 40)
	for i := range many {
		many[i] = uint32(1 + i%7)
	}
	skewed := make([]uint32, 300)
	for i := range skewed {
		skewed[i] = 1
	}
	skewed[17] = 1000
	cases := map[string][]uint32{"1:2:3": {1, 2, 3}, "1:1000": {1, 1000}, "equal": {100, 100, 100, 100},
		"sixteen": many[:16], "a tree of 40": many, "a tree of 300, one of 1000": skewed}
	for name, weights := range cases {
		t.Run(name, func(t *testing.T) {
			// Clients differ in each run. Chance alone fails one draw of a thousand, three in a row once in 10^9 runs;
			// a table that is wrong fails every draw.
			const draws = 3
			for draw := 1; ; draw++ {
				seed := uint64(time.Now().UnixNano())
				counts, tab := flows(t, rand.New(rand.NewPCG(seed, 1)), 10000, weights)
				p := chiSquare(counts, weights)
				t.Logf("seed %d: %v for weights %v has p = %g", seed, counts, weights, p)
				if p >= 0.001 {
					return
				}
				if draw == draws {
					t.Fatalf("p < 0.001 in %d draws of new clients; table %v", draws, tab.Nodes()[0])
				}
			}
		})
	}
}

// flows counts which target n new clients get.
func flows(t *testing.T, r *rand.Rand, n int, weights []uint32) ([]int, Table) {
	tab := table(t, weights...)
	counts := make([]int, len(weights))
	for range n {
		l, ok := tab.Pick(Hash(client(r), 0))
		if !ok {
			t.Fatal("a table with weights chose nothing")
		}
		counts[int(l-loc(0))]++
	}
	return counts, tab
}

// chiSquare is the probability of a split at least as uneven as counts. Targets that expect fewer
// than five flows are taken together, as the test asks for.
func chiSquare(counts []int, weights []uint32) float64 {
	var sum, all float64
	for i, w := range weights {
		sum, all = sum+float64(w), all+float64(counts[i])
	}
	var x, rareGot, rareWant float64
	cells := 0
	add := func(got, want float64) {
		if want > 0 {
			x, cells = x+(got-want)*(got-want)/want, cells+1
		}
	}
	for i, w := range weights {
		if want := all * float64(w) / sum; want < 5 {
			rareGot, rareWant = rareGot+float64(counts[i]), rareWant+want
		} else {
			add(float64(counts[i]), want)
		}
	}
	add(rareGot, rareWant)
	return upperGamma(float64(cells-1)/2, x/2)
}

// upperGamma is the regularized upper incomplete gamma function, by its series.
func upperGamma(a, x float64) float64 {
	if x == 0 {
		return 1
	}
	lg, _ := math.Lgamma(a + 1)
	term := math.Exp(a*math.Log(x) - x - lg)
	sum := term
	for k := 1.0; k < 10000 && term > sum*1e-15; k++ {
		term *= x / (a + k)
		sum += term
	}
	return 1 - sum
}

// TestRareTargetsGetTheirShare looks at ratios that 10,000 flows say nothing about.
func TestRareTargetsGetTheirShare(t *testing.T) {
	const n = 1 << 22
	r := rand.New(rand.NewPCG(5, 5))
	for _, w := range []uint32{1000, MaxWeight} {
		tab, got := table(t, 1, w), 0
		for range n {
			if l, _ := tab.Pick(mix(r.Uint64())); l == loc(0) {
				got++
			}
		}
		want := float64(n) / float64(w+1)
		if math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
			t.Errorf("1:%d gave the first %d of %d flows, want about %.0f", w, got, n, want)
		}
	}
}

func TestWeightZeroIsNeverChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 60).Draw(t, "weights")
		tab := table(t, weights...)
		for _, k := range rapid.SliceOfN(rapid.Uint64(), 50, 50).Draw(t, "k") {
			if l, ok := tab.Pick(k); ok != !tab.Empty() || ok && weights[int(l-loc(0))] == 0 {
				t.Fatalf("weights %v: Pick(%#x) = %v, %v", weights, k, l, ok)
			}
		}
	})
}

// TestOnlyFlowsOfTheChangedTargetMove is exact where one node holds all targets.
func TestOnlyFlowsOfTheChangedTargetMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.Uint32Range(0, MaxWeight), 1, Fanout).Draw(t, "weights")
		after := append([]uint32(nil), before...)
		i := rapid.IntRange(0, len(before)-1).Draw(t, "changed")
		after[i] = rapid.Uint32Range(0, MaxWeight).Draw(t, "new weight")
		a, b := table(t, before...), table(t, after...)
		if a.Empty() || b.Empty() {
			return
		}
		for _, k := range rapid.SliceOfN(rapid.Uint64(), 100, 100).Draw(t, "k") {
			was, _ := a.Pick(k)
			is, _ := b.Pick(k)
			if was != is && was != loc(i) && is != loc(i) {
				t.Fatalf("weight %d of %v from %d to %d moved a flow from %v to %v", i, loc(i), before[i], after[i], was, is)
			}
		}
	})
}

// TestLargeTablesMoveFewFlows: a tree moves at most one share of flows per level.
func TestLargeTablesMoveFewFlows(t *testing.T) {
	weights := make([]uint32, 200)
	for i := range weights {
		weights[i] = 100
	}
	before, after := table(t, weights[:199]...), table(t, weights...)
	r, moved := rand.New(rand.NewPCG(1, 2)), 0
	const n = 100000
	for range n {
		k := r.Uint64()
		was, _ := before.Pick(k)
		if is, _ := after.Pick(k); is != was {
			moved++
		}
	}
	if limit := 4 * n / 200; moved > limit {
		t.Errorf("the 200th target moved %d of %d flows, want at most %d", moved, n, limit)
	}
}

func TestTheOrderOfTargetsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "n")
		targets := make([]Target, n)
		for i := range targets {
			targets[i] = Target{loc(i), uint32(i + 1)}
		}
		a, _ := New(targets)
		b, _ := New(rapid.Permutation(targets).Draw(t, "order"))
		for k := range uint64(50) {
			x, _ := a.Pick(mix(k))
			if y, _ := b.Pick(mix(k)); x != y {
				t.Fatalf("Pick(%#x) = %v or %v", mix(k), x, y)
			}
		}
	})
}

// TestShareIsExact up to the sums that a node can hold.
func TestShareIsExact(t *testing.T) {
	weights := make([]uint32, 100)
	all := 0.0
	for i := range weights {
		weights[i] = uint32(1 + i*i*6)
		all += float64(weights[i])
	}
	tab := table(t, weights...)
	for i, w := range weights {
		if got, want := tab.Share(loc(i)), float64(w)/all; math.Abs(got-want) > want*1e-9 {
			t.Errorf("Share of weight %d = %v, want %v", w, got, want)
		}
	}
	if got := tab.Share(loc(100)); got != 0 {
		t.Errorf("Share of no instance = %v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, targets := range map[string][]Target{
		"a weight above 65535": {{loc(0), MaxWeight + 1}},
		"a locator twice":      {{loc(0), 1}, {loc(1), 1}, {loc(0), 2}},
	} {
		if _, err := New(targets); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func BenchmarkPick16(b *testing.B)  { benchmark(b, 16) }
func BenchmarkPick300(b *testing.B) { benchmark(b, 300) }

func benchmark(b *testing.B, n int) {
	weights := make([]uint32, n)
	for i := range weights {
		weights[i] = 100
	}
	tab := table(b, weights...)
	for k := uint64(0); b.Loop(); k++ {
		tab.Pick(mix(k))
	}
}
