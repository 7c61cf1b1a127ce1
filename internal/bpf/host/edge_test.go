package host

import (
	"net/netip"
	"os"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// newEdge opens an unpinned edge with a known secret, so that its socketIDs repeat from run to run.
func newEdge(t testing.TB, cfg Config) *Edge {
	t.Helper()
	nstest.Root(t)
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

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		playServer()
		return
	}
	if os.Getenv(streamerEnv) != "" {
		playStreamer()
		return
	}
	nstest.Main(m)
}

var vid = netip.MustParseAddr("fd5e::7")
