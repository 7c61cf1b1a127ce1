package emubench

import (
	"math/rand/v2"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
)

func TestLargeLabsAreLabs(t *testing.T) {
	text, err := largeLab(50)
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.Parse("size.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Nodes) != 51 {
		t.Errorf("%d nodes, want 50 routers and a host", len(f.Nodes))
	}
	if f, err = file.Parse("frr.yaml", []byte(frrLab)); err != nil || len(f.Nodes) != daemons+1 {
		t.Errorf("FRR: %v", err)
	}
}

func TestAllPairsAreAllPairs(t *testing.T) {
	p := pairs{names: make([]string, 7), large: large{allPairs: true}}
	seen := map[[2]int]bool{}
	for n := range p.count() {
		first, second := p.pair(n, nil)
		seen[[2]int{first, second}] = true
	}
	if len(seen) != 49 {
		t.Errorf("%d pairs of 7 routers", len(seen))
	}
	p.large.allPairs = false
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 1000 {
		if first, second := p.pair(n, rng); first >= 7 || second >= 7 {
			t.Fatalf("pair %d, %d of 7 routers", first, second)
		}
	}
}
