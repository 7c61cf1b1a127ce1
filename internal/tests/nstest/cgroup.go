package nstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// Cgroup makes a cgroup for the test and returns its directory; everything in it is killed at the end.
func Cgroup(t testing.TB, name string) string {
	t.Helper()
	root, err := cgroups.Mount()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, fmt.Sprintf("scaffold-test-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeCgroup(dir) })
	return dir
}

// removeCgroup kills all processes below dir and removes it with its children.
func removeCgroup(dir string) {
	if err := cgroups.Group(dir).Remove(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "nstest:", err)
	}
}
