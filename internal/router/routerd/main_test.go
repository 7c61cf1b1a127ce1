package routerd

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// daemonEnv holds the Config of a daemon to run instead of the tests: it needs a process of its own,
// to be in a namespace and to be killed.
const daemonEnv = "SCAFFOLD_TEST_ROUTERD"

func TestMain(m *testing.M) {
	text := os.Getenv(daemonEnv)
	if text == "" {
		nstest.Main(m)
	}
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := Run(ctx, cfg, log); err != nil {
		fmt.Fprintln(os.Stderr, "routerd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
