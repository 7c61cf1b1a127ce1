package host

import (
	"net/netip"
	"os"
	"testing"

	"scaffold.dev/scaffold/sid"
)

// needRoot ends a test that cannot run here; where root was promised that is a failure.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("SCAFFOLD_ROOT_TESTS") == "1" {
		t.Fatal("this test needs root, and SCAFFOLD_ROOT_TESTS=1 promised it")
	}
	t.Skip("needs root: loads BPF programs")
}

// newEdge opens an unpinned edge with a known secret, so that its socketIDs repeat from run to run.
func newEdge(t *testing.T, cfg Config) *Edge {
	t.Helper()
	needRoot(t)
	cfg.Space, cfg.Identity = sid.DefaultSpace(), vid
	if cfg.MaxFlows == 0 {
		cfg.MaxFlows = 4096
	}
	e, err := Open(cfg)
	if err != nil {
		t.Fatalf("open the edge: %+v", err)
	}
	t.Cleanup(func() { e.Close(false) })
	return e
}

var vid = netip.MustParseAddr("fd5e::7")
