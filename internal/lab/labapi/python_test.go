package labapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// The client's own tests, against the server that it starts.
func TestThePythonClientPassesItsTests(t *testing.T) {
	nstest.Root(t)
	python := nstest.Program(t, "python3", "python3")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("../../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-W", "error", "-m", "unittest", "discover", "-v", "-s", "tests", "-t", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SCAFFOLD="+self)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob("/run/netns/scaf-py_*"); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
