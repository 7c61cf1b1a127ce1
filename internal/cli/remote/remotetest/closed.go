package remotetest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Closed is a run directory with a daemon's socket in it that somebody may not use.
func Closed(t *testing.T, socket, what string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, socket)
	if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Chmod(filepath.Join(dir, what), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, what), 0o700) }) //nolint:errcheck // the next one, which removes it, says so
	return dir
}
