package session

import (
	"math/rand/v2"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/model"
	"scaffold.dev/scaffold/sid"
)

// modelEvent is the model's form of an entry.
func modelEvent(x Entry) model.Event {
	v := model.Event{End: model.Client, What: x.What, Before: modelStand(x.Before), After: modelStand(x.After)}
	if x.Server {
		v.End = model.Server
	}
	if x.In != nil {
		in := modelMessage(*x.In)
		v.In = &in
	}
	for _, o := range x.Out {
		v.Out = append(v.Out, modelMessage(o))
	}
	return v
}

func modelStand(s Stand) model.Stand {
	return model.Stand{State: s.State, Epoch: s.Epoch, Seen: s.Seen, Socket: uint64(s.Socket), Peer: uint64(s.Peer)}
}

func modelMessage(s Said) model.Message {
	m := model.Message{Kind: s.Kind, Epoch: s.Epoch, Seen: s.Seen, Socket: uint64(s.Socket), Quote: uint64(s.Quote)}
	for _, id := range s.Chain {
		m.Chain = append(m.Chain, uint64(id))
	}
	return m
}

// record runs two engines by lot, short enough for the model's numbers.
func record(t *testing.T, seed uint64) (run []model.Event) {
	lot := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, 2)
	for _, h := range w.hosts {
		h.cfg.Journal = func(x Entry) { run = append(run, modelEvent(x)) }
	}
	w.connect(w.hosts[0], w.hosts[1], Flow{Proto: sid.TCP})
	for moves := 0; moves < 6; {
		w.now = w.now.Add(time.Millisecond)
		switch n := lot.IntN(8); {
		case n < 2:
			moves++
			w.move(w.hosts[n])
		case len(w.pool) == 0:
			w.tick()
		default:
			i := lot.IntN(len(w.pool))
			d := w.pool[i]
			if n != 2 {
				w.pool = append(w.pool[:i:i], w.pool[i+1:]...)
			}
			if n != 3 {
				w.deliver(d)
			}
		}
	}
	w.heal()
	return run
}

// TestRunsReplayOnTheModel: SPIN executes the model along runs of the code.
func TestRunsReplayOnTheModel(t *testing.T) {
	spin := nstest.Program(t, "spin", "spin")
	for seed := range uint64(10) {
		run := record(t, seed)
		if n, err := model.Replay(t.Context(), spin, run); err != nil || n != len(run) {
			t.Fatalf("seed %d: %d of %d events: %v", seed, n, len(run), err)
		}
		run[len(run)-1].After.Epoch++
		if _, err := model.Replay(t.Context(), spin, run); err == nil {
			t.Fatalf("seed %d: the model follows a run that is not the code's", seed)
		}
	}
}
