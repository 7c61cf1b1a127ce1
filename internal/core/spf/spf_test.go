package spf

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// floyd is the slow and obvious all-pairs cost (Floyd and Warshall 1962): cost[from][to].
func floyd(g *Graph) [][]uint64 {
	const far = 1 << 40
	n := g.Nodes()
	cost := make([][]uint64, n)
	for i := range cost {
		cost[i] = make([]uint64, n)
		for j := range cost[i] {
			cost[i][j] = far
		}
		cost[i][i] = 0
	}
	for e := range g.Edges() {
		for _, d := range directed(g.Edge(e)) {
			cost[d.A][d.B] = min(cost[d.A][d.B], uint64(d.Weight[0]))
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				cost[i][j] = min(cost[i][j], cost[i][k]+cost[k][j])
			}
		}
	}
	return cost
}

// directed are the directions of an edge in which something passes, each from A to B.
func directed(e Edge) (all []Edge) {
	if e.Weight[0] != 0 {
		all = append(all, e)
	}
	if e.Weight[1] != 0 {
		all = append(all, Edge{e.B, e.A, [2]uint32{e.Weight[1]}})
	}
	return all
}

// obvious are the next hops by the costs of floyd.
func obvious(g *Graph, cost [][]uint64, from, to int) (hops []int32) {
	for e := range g.Edges() {
		for _, d := range directed(g.Edge(e)) {
			if d.A == from && from != to && cost[from][to] < 1<<32 && uint64(d.Weight[0])+cost[d.B][to] == cost[from][to] {
				hops = append(hops, int32(e))
			}
		}
	}
	return hops
}

func check(t *rapid.T, g *Graph, trees []Tree) {
	cost := floyd(g)
	for _, tree := range trees {
		for from := range g.Nodes() {
			want := uint32(Unreachable)
			if c := cost[from][tree.To]; c < Unreachable {
				want = uint32(c)
			}
			if tree.Cost[from] != want {
				t.Fatalf("%d to %d costs %d; Floyd and Warshall say %d", from, tree.To, tree.Cost[from], want)
			}
			if hops := g.Hops(&tree, from, nil); !slices.Equal(hops, obvious(g, cost, from, tree.To)) {
				t.Fatalf("%d to %d by edges %v; Floyd and Warshall say %v", from, tree.To, hops, obvious(g, cost, from, tree.To))
			}
		}
	}
}

func anyGraph(t *rapid.T) *Graph {
	n := rapid.IntRange(1, 12).Draw(t, "nodes")
	heaviest := rapid.Uint32Range(1, 5).Draw(t, "heaviest")
	var edges []Edge
	for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		if a != b {
			edges = append(edges, Edge{a, b, anyWeight(t, heaviest)})
		}
	}
	g, err := New(n, edges)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func anyWeight(t *rapid.T, heaviest uint32) [2]uint32 {
	low := min(heaviest-1, rapid.Uint32Range(0, 1).Draw(t, "lightest"))
	w := rapid.Uint32Range(low, heaviest)
	return [2]uint32{w.Draw(t, "there"), w.Draw(t, "back")}
}

func TestTreesAreThoseOfFloydAndWarshallAfterAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph(t)
		var w Workspace
		trees := make([]Tree, g.Nodes())
		for to := range trees {
			trees[to].To = to
			g.Fill(&trees[to], &w)
		}
		check(t, g, trees)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			if g.Edges() == 0 {
				break
			}
			change(t, g, trees, &w)
			check(t, g, trees)
		}
	})
}

// change cuts an edge or joins it, and sees that only nodes are said to have changed that have, and all of them.
func change(t *rapid.T, g *Graph, trees []Tree, w *Workspace) {
	e := rapid.IntRange(0, g.Edges()-1).Draw(t, "edge")
	before := picture(g, trees)
	cut := g.Edge(e).Weight != [2]uint32{}
	var weight [2]uint32
	if cut {
		weight = g.Cut(e)
	} else if err := g.Join(e, anyWeight(t, 4)); err != nil {
		t.Fatal(err)
	}
	var told [][]int32
	for i := range trees {
		if cut {
			told = append(told, slices.Clone(g.AfterCut(&trees[i], e, weight, w)))
		} else {
			told = append(told, slices.Clone(g.AfterJoin(&trees[i], e, w)))
		}
	}
	after := picture(g, trees)
	for to := range trees {
		for n := range g.Nodes() {
			if !slices.Equal(before[to][n], after[to][n]) != slices.Contains(told[to], int32(n)) {
				t.Fatalf("node %d to %d: %v became %v; said to have changed: %v", n, to, before[to][n], after[to][n], told[to])
			}
		}
	}
}

// picture is every node's cost and next hops, by destination.
func picture(g *Graph, trees []Tree) [][][]int32 {
	all := make([][][]int32, len(trees))
	for to := range trees {
		for n := range g.Nodes() {
			all[to] = append(all[to], g.Hops(&trees[to], n, []int32{int32(trees[to].Cost[n])}))
		}
	}
	return all
}

func TestGraphsThatCannotBeAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		nodes int
		edge  Edge
	}{
		"no nodes":           {0, Edge{}},
		"a loop":             {2, Edge{1, 1, [2]uint32{1, 1}}},
		"an end that is not": {2, Edge{0, 2, [2]uint32{1, 1}}},
		"a negative end":     {2, Edge{-1, 1, [2]uint32{1, 1}}},
		"too heavy":          {1000, Edge{0, 1, [2]uint32{1, 5_000_000}}},
	} {
		if _, err := New(c.nodes, []Edge{c.edge}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g, err := New(2, []Edge{{0, 1, [2]uint32{1, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if g.Join(0, [2]uint32{2, 2}) == nil {
		t.Error("an edge was joined that is not cut")
	}
}

// mesh is a connected graph of four edges for each node, with weights up to the heaviest.
func mesh(nodes int, heaviest uint32) *Graph {
	rng := rand.New(rand.NewPCG(1, uint64(nodes)))
	var edges []Edge
	for n := 1; n < nodes; n++ {
		for range 2 {
			w := 1 + rng.Uint32N(heaviest)
			edges = append(edges, Edge{rng.IntN(n), n, [2]uint32{w, w}})
		}
	}
	g, err := New(nodes, edges)
	if err != nil {
		panic(err)
	}
	return g
}

// cpu is the CPU time of the process in ns. It says more than the clock on a machine with neighbours.
func cpu() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return t.Nano()
}

func report(b *testing.B, start int64) {
	b.ReportMetric(float64(cpu()-start)/float64(b.N)/1e6, "cpu-ms/op")
}

func BenchmarkAllDestinations(b *testing.B) {
	for name, g := range map[string]*Graph{"1000": mesh(1000, 1000), "1000-even": mesh(1000, 1),
		"4000": mesh(4000, 1000), "4000-even": mesh(4000, 1)} {
		b.Run(name, func(b *testing.B) {
			var w Workspace
			var t Tree
			start := cpu()
			for range b.N {
				for t.To = range g.Nodes() {
					g.Fill(&t, &w)
				}
			}
			report(b, start)
		})
	}
}

func BenchmarkEdgeDownAndUp4000(b *testing.B) {
	g := mesh(4000, 1000)
	var w Workspace
	trees := make([]Tree, g.Nodes())
	for to := range trees {
		trees[to].To = to
		g.Fill(&trees[to], &w)
	}
	nodes := 0
	b.ResetTimer()
	start := cpu()
	for i := range b.N {
		e := i * 31 % g.Edges()
		weight := g.Cut(e)
		for to := range trees {
			nodes += len(g.AfterCut(&trees[to], e, weight, &w))
		}
		if err := g.Join(e, weight); err != nil {
			b.Fatal(err)
		}
		for to := range trees {
			g.AfterJoin(&trees[to], e, &w)
		}
	}
	report(b, start)
	b.ReportMetric(float64(nodes)/float64(b.N), "changed/op")
}
