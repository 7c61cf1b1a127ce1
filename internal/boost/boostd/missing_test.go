package boostd

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/features"
)

// A kernel that lacks something is told as that by the process that was started, whose exit code says so: the unit gives up.
func TestWhatTheKernelLacksIsNoOrdinaryFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boostd.yaml")
	text := "name: x\ndoor: 127.0.0.1\nports: [lo]\ncontrollers: [http://127.0.0.1:1]\ncredentials: " + t.TempDir() + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(features.Pretend, "ring buffers")
	t.Setenv(agentEnv, path) // should it start a worker after all
	var missing *features.MissingError
	if err := Run(t.Context(), s, slog.New(slog.DiscardHandler), Manager{}); !errors.As(err, &missing) {
		t.Errorf("it ends by %v (%T): want what of the kernel is missing", err, err)
	}
}
