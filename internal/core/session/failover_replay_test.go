package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/model"
)

// recordFailover runs the failover of a flow by lot: messages are lost, doubled and late, the client moves, the first
// server may live on, and the instance that goes on may die in its turn.
func recordFailover(t *testing.T, seed uint64) (run []model.Event) {
	lot := rand.New(rand.NewPCG(seed, 0))
	w, k := newFailover(t)
	for i, h := range w.hosts {
		h.cfg.Journal = func(x Entry) {
			e := modelEvent(x)
			e.End = i
			run = append(run, e)
		}
	}
	c := w.hosts[0]
	if seed%2 == 0 {
		w.died(k)
	} else {
		w.hosts[1].SetCapable(web, true) // it is there, may be chosen, and does not know
		c.Lost(w.now, 0, func(f Flow) bool { return f.Key == k })
		w.collect(c)
	}
	for range 60 {
		w.now = w.now.Add(time.Millisecond)
		w.read(c)
		switch n := lot.IntN(40); {
		case n == 0 && failing(c, k):
			w.move(c)
		case n == 1:
			h := w.hosts[2+lot.IntN(2)]
			h.Fail(w.now, 0, Key{k.Stable, Server})
			w.collect(h)
		case n < 8 || len(w.pool) == 0:
			w.tick()
		default:
			i := lot.IntN(len(w.pool))
			d := w.pool[i]
			if n >= 12 {
				w.pool = slices.Delete(w.pool, i, i+1)
			}
			if n >= 16 {
				w.deliver(d)
			}
		}
	}
	settleFailover(w)
	return run
}

func failing(h *host, k Key) bool {
	f := h.flows[k]
	return f != nil && (f.state == Blocked || f.state == Asking || f.state == Confirming)
}

// TestFailoversReplayOnTheModel: SPIN executes the model of failover along runs of the code.
func TestFailoversReplayOnTheModel(t *testing.T) {
	spin := nstest.Program(t, "spin", "spin")
	for seed := range uint64(12) {
		run := recordFailover(t, seed)
		n, err := model.ReplayFailover(t.Context(), spin, run)
		if err != nil || n != len(run) {
			t.Fatalf("seed %d: %d of %d events: %v", seed, n, len(run), err)
		}
		last := slices.IndexFunc(run, func(e model.Event) bool { return e.End == model.Client && e.After.State == "Asking" })
		run[last].After.Epoch++
		if _, err := model.ReplayFailover(t.Context(), spin, run); err == nil {
			t.Fatalf("seed %d: the model follows a run that is not the code's", seed)
		}
	}
}
