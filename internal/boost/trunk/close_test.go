package trunk

import (
	"testing"

	"scaffold.dev/scaffold/internal/core/stripe"
)

// Who has closed a trunk gives its memory back, and connections that others serve end after that.
func TestAConnectionThatEndsAfterTheTrunkTouchesNoMemory(t *testing.T) {
	r := newRig(t, 0)
	a, b := pair(t)
	defer b.Close()
	last := newConnection(only(r.near), a, 1000, r.secret) // nobody serves it yet
	if err := r.near.add(last, r.secret); err != nil {
		t.Fatal(err)
	}
	r.near.mu.Lock()
	slot, room := r.near.slots.all.Get(stripe.MinChunk)
	if room == nil {
		t.Fatal("no memory")
	}
	if err := r.near.sender.Open(2, 0, stripe.MaxChunk); err != nil {
		t.Fatal(err)
	}
	r.near.sender.Push(2, stripe.Chunk{Length: 10, Slot: slot})
	r.near.mu.Unlock()
	r.near.Close()
	r.near.sender.Close(2) // its slot is free, and nobody has noticed
	for _, m := range []interface{ Close() error }{r.near.Send, r.near.Receive} {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.near.remove(last)
}
