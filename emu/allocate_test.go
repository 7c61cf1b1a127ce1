package emu

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// string of n routers with the same traffic through all.
func line(n int) Load {
	l := Load{Work: slices.Repeat([]float64{1}, n), Fixed: slices.Repeat([]int{-1}, n)}
	for i := range n - 1 {
		l.Pairs = append(l.Pairs, Traffic{i, i + 1, 1})
	}
	return l
}

func crossings(l Load, of []int) (n float64) {
	for _, p := range l.Pairs {
		if of[p.A] != of[p.B] {
			n += p.Amount
		}
	}
	return n
}

func TestAStringIsCutOnceOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		routers int
		cuts    float64
	}{{2, 0}, {4, 0}, {16, 1}, {64, 1}} {
		l := line(c.routers)
		if got := crossings(l, Assign(l, 2)); got != c.cuts {
			t.Errorf("%d routers on two shards: %g crossings, want %g", c.routers, got, c.cuts)
		}
	}
}

func TestIndependentPathsAreNotCut(t *testing.T) {
	l := Load{}
	for path := range 4 {
		for i := range 10 {
			l.Work, l.Fixed = append(l.Work, 1), append(l.Fixed, -1)
			if i > 0 {
				l.Pairs = append(l.Pairs, Traffic{10*path + i - 1, 10*path + i, 1})
			}
		}
	}
	of := Assign(l, 2)
	if n := crossings(l, of); n != 0 {
		t.Errorf("%g crossings", n)
	}
	in := [2]int{}
	for _, s := range of {
		in[s]++
	}
	if in != [2]int{20, 20} {
		t.Errorf("shards have %v routers", in)
	}
}

func TestFixedPartsStay(t *testing.T) {
	l := line(16)
	for i := range l.Fixed {
		l.Fixed[i] = i % 2 // the worst of the paper's placements
	}
	for i, s := range Assign(l, 2) {
		if s != i%2 {
			t.Errorf("router %d is in shard %d", i, s)
		}
	}
}

func TestNoPlacementIsWorseThanOneShard(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		n := 2 + r.IntN(40)
		l := Load{Fixed: slices.Repeat([]int{-1}, n)}
		for range n {
			l.Work = append(l.Work, r.Float64())
		}
		for range 3 * n {
			l.Pairs = append(l.Pairs, Traffic{r.IntN(n), r.IntN(n), r.Float64() / 10})
		}
		a := &assignment{load: l, shards: 3}
		if got, one := a.cost(Assign(l, 3)), a.cost(make([]int, n)); got > one {
			t.Errorf("%d parts: %g, in one shard %g", n, got, one)
		}
	}
}
