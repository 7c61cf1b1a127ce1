package breaks

import (
	"context"
	"errors"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func newNetwork(t *testing.T) *Network {
	nstest.Root(t)
	n, err := New(45)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// How long it stood still is for the benchmark to say; here, that every byte arrives once and in order.
func TestStreamsOutliveABreak(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n := newNetwork(t)
	for _, kick := range []bool{true, false} {
		if _, err := n.Stall(t.Context(), 100*time.Millisecond, kick); err != nil {
			t.Errorf("kick %v: %v", kick, err)
		}
	}
}

func TestABreakEndsWithItsContext(t *testing.T) {
	n := newNetwork(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Stall(ctx, time.Hour, true); !errors.Is(err, context.Canceled) {
		t.Errorf("a stall of an hour: error %v, want that it was cancelled", err)
	}
	if _, err := n.Crowd(ctx, 300, true); !errors.Is(err, context.Canceled) {
		t.Errorf("a crowd: error %v, want that it was cancelled", err)
	}
}

func TestACrowdIsKicked(t *testing.T) {
	if _, err := newNetwork(t).Crowd(t.Context(), 300, true); err != nil {
		t.Error(err)
	}
}
