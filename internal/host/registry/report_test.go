package registry

import (
	"io"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/serving"
)

var (
	stands = serving.Verdict{Reason: "accept queue does not move"}
	half   = serving.Verdict{Working: 1, Listeners: 2}
	moves  = serving.Verdict{}
)

// serves is a registry of a web that is known as ready.
func serves(t *testing.T, w *world) (*Registry, *instance) {
	t.Helper()
	r := in(t, w, io.Discard)
	r.replace(0, nil)
	r.event(0, listens(1))
	r.Policy(policy())
	r.Flush()
	if g := w.last(t); !g.Ready {
		t.Fatalf("it begins as %v, want ready", g)
	}
	return r, r.instances[web]
}

// judged is what the controller knows after the accept queue was judged so.
func (r *Registry) judged(t *testing.T, w *world, v serving.Verdict) *apiv1.Registration {
	t.Helper()
	r.instances[web].stuck, r.dirty = v, true
	r.Flush()
	return w.last(t)
}

// past lets a second go by.
func (i *instance) past() {
	i.turned, i.weighed = i.turned.Add(-turnsAfter), i.weighed.Add(-turnsAfter)
}

// TestAnInstanceTurnsForItsAcceptQueueOnceASecondAtMost: what it is at the end of the second is told then.
func TestAnInstanceTurnsForItsAcceptQueueOnceASecondAtMost(t *testing.T) {
	w := &world{}
	r, i := serves(t, w)
	if g := r.judged(t, w, stands); g.Ready || !g.Queue {
		t.Fatalf("the first turn is told as %v, want at once that its queue does not move", g)
	}
	told := len(w.reports)
	for range 20 { // 50 ms each
		r.judged(t, w, moves)
		r.judged(t, w, stands)
	}
	if n := len(w.reports) - told; n > 0 {
		t.Errorf("%d more turns were told within a second: %v", n, w.reports[told:])
	}
	if g := r.judged(t, w, moves); g.Ready {
		t.Errorf("told as %v within the second", g)
	}
	i.past()
	r.Flush() // it is still owed: nobody judged again
	if g := w.last(t); !g.Ready {
		t.Errorf("after the second it is known as %v, want ready", g)
	}
	if n := len(w.reports) - told; n != 1 {
		t.Errorf("%d reports for one turn: %v", n, w.reports[told:])
	}
}

// TestOnlyTurnsOfTheAcceptQueueWait: who is drained, or whose check fails, is told at once.
func TestOnlyTurnsOfTheAcceptQueueWait(t *testing.T) {
	w := &world{}
	r, i := serves(t, w)
	r.judged(t, w, stands)
	i.drained = true
	if g := r.judged(t, w, stands); g.Reason != "draining" {
		t.Errorf("drained within a second of a turn, and told as %v", g)
	}
	i.drained = false
	if g := r.judged(t, w, moves); !g.Ready {
		t.Errorf("its drain ended within a second of a turn, and it is told as %v", g)
	}
}

// TestHowManyListenersWorkIsTold, once a second at most; but an instance of which nothing works any more is told at once.
func TestHowManyListenersWorkIsTold(t *testing.T) {
	w := &world{}
	r, i := serves(t, w)
	if g := r.judged(t, w, half); !g.Ready || g.Working != 1 || g.Listeners != 2 {
		t.Fatalf("told as %v, want ready with 1 of 2 listeners", g)
	}
	if all := r.List(); !all[0].Ready || all[0].Reason != "1 of 2 listeners work" {
		t.Errorf("host status says %v", all[0])
	}
	if g := r.judged(t, w, moves); g.Listeners != 2 {
		t.Errorf("another number of listeners within a second: %v", g)
	}
	if g := r.judged(t, w, stands); g.Ready || g.Listeners != 0 {
		t.Errorf("nothing works any more, and it is told as %v", g)
	}
	if g := r.judged(t, w, half); g.Ready {
		t.Errorf("a turn within a second: %v", g)
	}
	i.past()
	if g := r.judged(t, w, half); !g.Ready || g.Working != 1 {
		t.Errorf("after a second it is known as %v, want ready with 1 of 2 listeners", g)
	}
	i.past()
	if g := r.judged(t, w, moves); !g.Ready || g.Listeners != 0 {
		t.Errorf("when all work it is known as %v, want no number", g)
	}
}
