package resolve

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

// walk returns whom a packet meets, in order, until somebody takes it or it is refused.
func walk(choose func(retry uint8, last sid.Locator) (sid.Locator, Outcome), takes func(sid.Locator) bool) (met []sid.Locator, taken bool) {
	var last sid.Locator
	for retry := uint8(0); ; retry++ {
		l, outcome := choose(retry, last)
		if outcome != Chosen {
			return met, false
		}
		met = append(met, l)
		if takes(l) {
			return met, true
		}
		if retry == sid.MaxRetry {
			return met, false
		}
		last = l
	}
}

// TestWhoServesIsFound: of any weights any may be dead while one lives, up to sixteen targets, and each is asked once.
// Above, sixteen different ones are asked.
func TestWhoServesIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(21, 400)).Draw(t, "targets")
		weight := rapid.OneOf(rapid.Uint32Range(1, 3), rapid.Just(uint32(1000)), rapid.Uint32Range(1, MaxWeight))
		targets := make([]Target, n)
		alive := map[sid.Locator]bool{}
		for i := range targets {
			targets[i] = Target{Locator: loc(i), Weight: weight.Draw(t, "weight")}
			if rapid.IntRange(0, 3).Draw(t, "alive") == 0 {
				alive[loc(i)] = true
			}
		}
		alive[loc(rapid.IntRange(0, n-1).Draw(t, "who lives surely"))] = true
		tab, err := New(targets)
		if err != nil {
			t.Fatal(err)
		}
		from := client(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "client"), 0)))
		met, taken := walk(func(retry uint8, last sid.Locator) (sid.Locator, Outcome) {
			return tab.Choose(from, sid.NewLabel(last, retry))
		}, func(l sid.Locator) bool { return alive[l] })
		seen := map[sid.Locator]bool{}
		for _, l := range met {
			if seen[l] {
				t.Fatalf("%v was asked twice: %v", l, met)
			}
			seen[l] = true
		}
		if dead := n - len(alive); !taken && dead <= sid.MaxRetry {
			t.Fatalf("%d of %d are dead, and the packet was refused after %v", dead, n, met)
		}
		if !taken && len(met) != sid.MaxRetry+1 {
			t.Fatalf("refused after %d of %d", len(met), n)
		}
	})
}

// TestWhoServesIsFoundInAChangingTable: the controller takes dead targets out between two returns, as many as it likes.
func TestWhoServesIsFoundInAChangingTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 16).Draw(t, "targets")
		targets := make([]Target, n)
		for i := range targets {
			targets[i] = Target{Locator: loc(i), Weight: rapid.Uint32Range(1, 1000).Draw(t, "weight")}
		}
		lives := loc(rapid.IntRange(0, n-1).Draw(t, "who lives"))
		// The return at which it changes and twice what is left fit into those that there can be: the round of draws that
		// is under way may be half over, and another has to follow.
		const most = sid.MaxRetry/2 - 1
		var rest []Target
		for _, x := range targets {
			if x.Locator == lives {
				rest = append(rest, x)
			} else if len(rest) < most && rapid.Bool().Draw(t, "stays") {
				rest = append(rest, x)
			}
		}
		change := uint8(rapid.IntRange(1, min(n, sid.MaxRetry-2*len(rest))).Draw(t, "return at which it changes"))
		before, err := New(targets)
		if err != nil {
			t.Fatal(err)
		}
		after, err := New(rest)
		if err != nil {
			t.Fatal(err)
		}
		from := client(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "client"), 0)))
		met, taken := walk(func(retry uint8, last sid.Locator) (sid.Locator, Outcome) {
			if retry < change {
				return before.Choose(from, sid.NewLabel(last, retry))
			}
			return after.Choose(from, sid.NewLabel(last, retry))
		}, func(l sid.Locator) bool { return l == lives })
		if !taken {
			t.Fatalf("refused, although %v serves all the time; asked %v", lives, met)
		}
	})
}

// TestTheOnlyOneIsNotAskedTwice: a restart in progress is the client's edge to wait for, not the network's to ask about.
func TestTheOnlyOneIsNotAskedTwice(t *testing.T) {
	from := client(rand.New(rand.NewPCG(1, 1)))
	one := table(t, 100)
	if _, outcome := one.Choose(from, sid.NewLabel(loc(0), 1)); outcome != AllRefused {
		t.Errorf("returned by the only target: outcome %d", outcome)
	}
	if l, outcome := one.Choose(from, sid.NewLabel(loc(7), 1)); outcome != Chosen || l != loc(0) {
		t.Errorf("returned by one that is not in the table any more: %v, outcome %d", l, outcome)
	}
	if _, outcome := (Table{}).Choose(from, sid.NewLabel(loc(7), 1)); outcome != Nobody {
		t.Errorf("of an empty table: outcome %d", outcome)
	}
}

// TestTheSharesOfWhoDiesFallToTheOthersByWeight, in one node and in a tree.
func TestTheSharesOfWhoDiesFallToTheOthersByWeight(t *testing.T) {
	many := make([]uint32, 60)
	for i := range many {
		many[i] = uint32(1 + i%3)
	}
	many[0] = 1000
	for name, weights := range map[string][]uint32{"one node": {1000, 1, 2, 3}, "a tree": many} {
		t.Run(name, func(t *testing.T) {
			tab := table(t, weights...)
			for draw := 1; ; draw++ {
				r := rand.New(rand.NewPCG(rand.Uint64(), 1))
				counts := make([]int, len(weights)-1)
				for total := 0; total < 10000; {
					from := client(r)
					if l, _ := tab.Choose(from, 0); l != loc(0) {
						continue
					}
					l, _ := tab.Choose(from, sid.NewLabel(loc(0), 1))
					counts[int(l-loc(1))]++
					total++
				}
				p := chiSquare(counts, weights[1:])
				t.Logf("%v for weights %v: p = %g", counts, weights[1:], p)
				if p >= 0.001 {
					return
				}
				if draw == 3 {
					t.Fatal("p < 0.001 in three draws")
				}
			}
		})
	}
}
