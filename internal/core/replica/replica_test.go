package replica

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// A follower holds what it is told, as a router does its rules.
type follower struct {
	naming Naming[int]
	held   map[int]int
}

func (f *follower) put(k, v int) {
	f.naming.Name(k)
	f.held[k] = v
}

func (f *follower) commit() {
	for _, k := range f.naming.Commit(maps.Keys(f.held)) {
		delete(f.held, k)
	}
}

// A teller changes what there is, and tells it to a follower: a snapshot first, then changes. A session that ends leaves
// the follower with what it has until the next one's snapshot is complete.
type teller struct {
	f       *follower
	is      map[int]int
	joined  bool
	waiting []int // keys that the snapshot under way has still to name
	telling bool
}

func (x *teller) change(t *rapid.T) {
	k := rapid.IntRange(0, 9).Draw(t, "key")
	if rapid.Bool().Draw(t, "gone") {
		if delete(x.is, k); x.joined {
			delete(x.f.held, k)
		}
		return
	}
	v := rapid.IntRange(0, 2).Draw(t, "value")
	if x.is[k] = v; x.joined {
		x.f.put(k, v)
	}
}

// TestWhatIsHeldIsWhatWasTold follows sessions that end anywhere, also within a snapshot.
func TestWhatIsHeldIsWhatWasTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &follower{held: rapid.MapOf(rapid.IntRange(0, 9), rapid.IntRange(0, 2)).Draw(t, "of an earlier process")}
		x := &teller{f: f, is: map[int]int{}}
		before := maps.Clone(f.held)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				switch {
				case x.joined && !maps.Equal(f.held, x.is):
					t.Fatalf("holds %v, was told %v", f.held, x.is)
				case x.joined:
					before = maps.Clone(f.held)
				}
				for k := range before { // what is there stays until a snapshot has not named it
					if _, ok := f.held[k]; !x.joined && !ok {
						t.Fatalf("%d went outside of a commit", k)
					}
				}
			},
			"change": func(t *rapid.T) {
				if !x.telling { // a teller tells a snapshot of one moment
					x.change(t)
				}
			},
			"part": func(*rapid.T) {
				f.naming.Drop()
				x.joined, x.telling = false, false
			},
			"begin": func(t *rapid.T) { // with or without a word of the end of the session before
				f.naming.Begin()
				x.joined, x.telling, x.waiting = false, true, nil
				for k := range 10 {
					if _, ok := x.is[k]; ok {
						x.waiting = append(x.waiting, k)
					}
				}
				x.waiting = rapid.Permutation(x.waiting).Draw(t, "order")
			},
			"piece": func(t *rapid.T) {
				if !x.telling {
					return
				}
				for range rapid.IntRange(0, len(x.waiting)).Draw(t, "so many") {
					f.put(x.waiting[0], x.is[x.waiting[0]])
					x.waiting = x.waiting[1:]
				}
			},
			"commit": func(*rapid.T) {
				if x.telling && len(x.waiting) == 0 {
					f.commit()
					x.joined, x.telling = true, false
				}
			},
			"commit without a beginning": func(*rapid.T) {
				if !x.telling {
					f.commit()
				}
			},
		})
	})
}

func TestTheHolderMayRemoveAsItGoes(t *testing.T) {
	held := map[int]bool{1: true, 2: true, 3: true}
	var n Naming[int]
	n.Begin()
	n.Name(2)
	for _, k := range n.Commit(maps.Keys(held)) {
		clear(held)
		held[k] = true
	}
	if n.Under() || n.Commit(maps.Keys(held)) != nil {
		t.Error("the snapshot goes on after its end")
	}
	if n.Begin(); n.Commit(nil) != nil || n.Under() {
		t.Error("who holds nothing has something to remove")
	}
}
