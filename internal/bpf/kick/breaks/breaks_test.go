package breaks

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/nstest"
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
	n := newNetwork(t)
	for _, kick := range []bool{true, false} {
		if _, err := n.Stall(100*time.Millisecond, kick); err != nil {
			t.Errorf("kick %v: %v", kick, err)
		}
	}
}

func TestACrowdIsKicked(t *testing.T) {
	if _, err := newNetwork(t).Crowd(300, true); err != nil {
		t.Error(err)
	}
}
