package events

import (
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
)

// TestTheHistoryIsBounded: in memory and in the store.
func TestTheHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := NewHistory(nil, nil, nil, nil)
	stored := map[string]bool{}
	keep := func(list []store.Change) {
		for _, c := range list {
			if stored[c.Key()] = !c.Deletes(); c.Deletes() {
				delete(stored, c.Key())
			}
		}
	}
	for range 3*Remembered + 17 {
		order := New("service.policy", "web", "policy changed")
		order.Seq, order.By = h.Next(), &apiv1.Actor{Role: "admin"}
		keep(h.Records([]*apiv1.Event{order}))
		h.add(order)
		e := New("host.join", "h", "joined")
		e.Seq = h.Next()
		h.add(e)
		if h.unsaved = append(h.unsaved, e); len(h.unsaved) == 100 {
			keep(h.gathered())
		}
	}
	ordered, happened := 0, 0
	for key := range stored {
		if strings.HasPrefix(key, "ordered/") {
			ordered++
		} else {
			happened++
		}
	}
	if ordered != Remembered || happened > Remembered/100+2 || happened < Remembered/100 {
		t.Errorf("stored are %d orders and %d entries of what happened", ordered, happened)
	}
	if list := h.Last(3*Remembered, Every); len(list) != 2*Remembered || len(h.ordered) > 2*Remembered {
		t.Errorf("%d events are told, %d in memory", len(list), len(h.ordered))
	}
}
