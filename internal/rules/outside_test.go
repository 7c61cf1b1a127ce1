package rules

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The example that is a Go module of its own names all that ours needs: a dependency that is new here is to be
// named there too. scripts/test.sh builds and tests it.
func TestTheOutsideModuleHasItsDependencies(t *testing.T) {
	dir := filepath.Join(root(t), "examples", "module")
	cmd := exec.Command("go", "-C", dir, "list", "-mod=readonly", "-buildvcs=false", "-deps", "./...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go -C examples/module mod tidy brings its go.mod and go.sum up to date: %v\n%.2000s", err, out)
	}
}
