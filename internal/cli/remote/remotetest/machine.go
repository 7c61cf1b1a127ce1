// Package remotetest has machines for tests of commands that look for a daemon.
package remotetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/remote"
)

// Machine is a run directory with sockets in it, all of them alive but those named dead*.
func Machine(t *testing.T, sockets ...string) *remote.Remote {
	t.Helper()
	dir := t.TempDir()
	for _, s := range sockets {
		path := filepath.Join(dir, s)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil && !strings.Contains(path, "dead")
	}
	return &remote.Remote{Run: dir, Getenv: func(string) string { return "" }, Alive: exists, Mine: func(path string) bool { return !strings.Contains(path, "theirs") }, Login: func() string { return "" }}
}
