package emu_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
)

// stray sends each packet on to a port that depends on its hop limit and on how many came before.
type stray struct{ seen int }

func (s *stray) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		p := &batch[i]
		s.seen++
		if p.Hop--; p.Hop == 0 {
			p.Port = emu.Drop
			continue
		}
		p.Port = uint16((s.seen*7 + int(p.Hop)) % len(r.Ports()))
	}
}

// A mesh is a random network of routers that send packets wrong ways, with two sources.
func mesh(t testing.TB, opt emu.Options, seed uint64) *emu.Net {
	t.Helper()
	opt.Virtual = true
	n := emu.New(opt)
	t.Cleanup(func() { n.Close() })
	r := rand.New(rand.NewPCG(seed, 1))
	var routers []*emu.Router
	for i := range 20 {
		if i < 2 {
			to := []netip.Addr{netip.MustParseAddr("fd01::1"), netip.MustParseAddr("fd01::2")}
			routers = append(routers, n.Router(fmt.Sprint("source", i), &traffic.Source{From: netip.MustParseAddr("fd00::1"), To: to, Size: 100 + i, Gap: 10 * time.Microsecond, Count: 500}))
		} else {
			routers = append(routers, n.Router(fmt.Sprint("r", i), &stray{}))
		}
		for range 2 {
			if i == 0 {
				break
			}
			p := emu.Params{
				Delay: time.Duration(1+r.IntN(1000)) * time.Microsecond, Rate: 1e9, Loss: 0.01, Duplicate: 0.02, Reorder: 0.02, Seed: r.Uint64(),
			}
			p.Jitter = time.Duration(r.Int64N(int64(p.Delay)))
			back := p
			back.Seed++
			if r.IntN(4) == 0 {
				p, back = emu.Params{}, emu.Params{}
			}
			if _, err := n.Link(routers[i], routers[r.IntN(i)], [2]emu.Params{p, back}); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.Trace()
	return n
}

func sum(t testing.TB, n *emu.Net) uint64 {
	t.Helper()
	s, err := n.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShardsDoNotChangeWhatHappens(t *testing.T) {
	for seed := range uint64(10) {
		var want uint64
		for _, shards := range []int{1, 2, 3} {
			n := mesh(t, emu.Options{Shards: shards, Split: true}, seed)
			if err := n.Run(200 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			used := map[int]bool{}
			for _, r := range n.Routers() {
				used[r.Shard()] = true
			}
			if len(used) != shards {
				t.Errorf("seed %d: %d of %d shards are used", seed, len(used), shards)
			}
			if got := sum(t, n); shards == 1 {
				want = got
			} else if got != want {
				t.Errorf("seed %d: with %d shards %x, with one %x", seed, shards, got, want)
			}
		}
	}
}

func TestMovesDoNotChangeWhatHappens(t *testing.T) {
	for seed := range uint64(10) {
		stay := mesh(t, emu.Options{Shards: 3, Split: true}, seed)
		if err := stay.Run(200 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		n := mesh(t, emu.Options{Shards: 3, Split: true}, seed)
		r := rand.New(rand.NewPCG(seed, 2))
		moved, refused := 0, 0
		for now := time.Duration(0); now < 200*time.Millisecond; now += time.Millisecond {
			if err := n.Run(now); err != nil {
				t.Fatal(err)
			}
			if err := n.Move(emu.Move{Router: n.Routers()[r.IntN(20)], Shard: r.IntN(3)}); err != nil {
				refused++ // joined without delay to one that stays
			} else {
				moved++
			}
		}
		if err := n.Run(200 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if sum(t, stay) != sum(t, n) || moved == 0 {
			t.Errorf("seed %d: %x without moves, %x with %d (%d were refused)", seed, sum(t, stay), sum(t, n), moved, refused)
		}
	}
}

func TestImpossiblePlacementsAreRefused(t *testing.T) {
	n := mesh(t, emu.Options{Shards: 2, Split: true}, 1)
	n.Routers()[3].Pin(2)
	if err := n.Run(0); err == nil {
		t.Error("a third shard of two was taken")
	}
	n = mesh(t, emu.Options{Shards: 2, Split: true}, 1)
	if err := n.Run(0); err != nil {
		t.Fatal(err)
	}
	if err := n.Move(emu.Move{Router: n.Routers()[3], Shard: 5}); err == nil {
		t.Error("a move to a sixth shard was taken")
	}
}

func TestBalanceMovesWhatIsBusy(t *testing.T) {
	n := emu.New(emu.Options{Virtual: true, Shards: 2, Split: true})
	t.Cleanup(func() { n.Close() })
	slow := [2]emu.Params{{Delay: time.Millisecond}, {Delay: time.Millisecond}}
	var busy []*emu.Router
	for range 2 { // two chains, which begin in the same shard
		last := n.Router("source", &traffic.Source{From: netip.MustParseAddr("fd00::1"), To: []netip.Addr{netip.MustParseAddr("fd01::1")}, Size: 100, Gap: time.Millisecond})
		for range 10 {
			next := n.Router("r", wire())
			if _, err := n.Link(last, next, slow); err != nil {
				t.Fatal(err)
			}
			busy, last = append(busy, next), next
		}
		if _, err := n.Link(last, n.Router("sink", &traffic.Sink{}), slow); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Run(0); err != nil {
		t.Fatal(err)
	}
	for _, r := range n.Routers() {
		if err := n.Move(emu.Move{Router: r, Shard: 0}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	moves, err := n.Balance()
	if err != nil || len(moves) != 12 {
		t.Fatalf("%d moves, %v", len(moves), err)
	}
	if a, b := busy[0].Shard(), busy[10].Shard(); a == b || busy[9].Shard() != a || busy[19].Shard() != b {
		t.Errorf("the chains are in shards %d and %d", a, b)
	}
	if err := n.Run(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	if moves, err := n.Balance(); err != nil || len(moves) != 0 {
		t.Errorf("%d moves with nothing to gain, %v", len(moves), err)
	}
}
