package rules

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The examples, and the benchmarks, that are Go modules of their own name all that ours needs: a dependency that is new here is to be
// named there too. scripts/test.sh builds and tests them.
func TestTheOutsideModulesHaveTheirDependencies(t *testing.T) {
	for _, name := range []string{"examples/module", "examples/router", "bench"} {
		dir := filepath.Join(root(t), name)
		cmd := exec.Command("go", "-C", dir, "list", "-mod=readonly", "-buildvcs=false", "-deps", "./...")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go -C %s mod tidy brings its go.mod and go.sum up to date: %v\n%.2000s", name, err, out)
		}
	}
}
