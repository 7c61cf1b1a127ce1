package topo

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPartsAreNamed(t *testing.T) {
	g := generate(t, "line", Options{Size: 7})
	g.Links = append(g.Links[:2:2], g.Links[3]) // r1-r2-r3, r4-r5, r6, r7
	const want = "the graph falls apart into 4 parts: 3 of r1, r2, r3; 2 of r4, r5; 1 of r6; 1 of r7"
	if err := g.Connected(); err == nil || err.Error() != want {
		t.Errorf("said %v, want %s", err, want)
	}
	if l := g.Largest(); len(l.Nodes) != 3 || len(l.Links) != 2 || l.Nodes[2].Name != "r3" {
		t.Errorf("the largest is %+v", l)
	}
}

func TestTheLargestPartIsConnectedAndHasMostNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &Graph{}
		g.number("r", rapid.IntRange(1, 30).Draw(t, "nodes"))
		for range rapid.IntRange(0, 30).Draw(t, "links") {
			a, b := rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "a"), rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "b")
			if a != b {
				g.join(a, b)
			}
		}
		l := g.Largest()
		if err := l.Connected(); err != nil {
			t.Fatal(err)
		}
		switch err := g.Connected().(type) {
		case nil:
			if len(l.Nodes) != len(g.Nodes) || len(l.Links) != len(g.Links) {
				t.Fatal("of a connected graph the largest part is not the whole")
			}
		case *ApartError:
			sum := 0
			for _, p := range err.Parts {
				sum += len(p)
			}
			if sum != len(g.Nodes) || len(l.Nodes) != len(err.Parts[0]) {
				t.Fatalf("%v of %d nodes; the largest has %d", err, len(g.Nodes), len(l.Nodes))
			}
		}
	})
}
