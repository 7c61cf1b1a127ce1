package bench

import (
	"context"
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestAKernelBenchmarkEndsWithItsContext(t *testing.T) {
	nstest.Root(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Table(ctx, TableSize{Services: 1000000, PerService: 10, Changes: 1000000, Packets: 1000000}); !errors.Is(err, context.Canceled) {
		t.Errorf("table: error %v, want that it was cancelled", err)
	}
	if _, err := Kick(ctx, 1000, 20000); !errors.Is(err, context.Canceled) {
		t.Errorf("kick: error %v, want that it was cancelled", err)
	}
}
