package labapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// One quick point of each line is enough to see that the script works.
func TestTheExampleScriptDrawsItsFigure(t *testing.T) {
	nstest.Root(t)
	python := nstest.Program(t, "python3", "python3")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), python, "-B", "../../../examples/python/tcp_loss.py", dir, "--name", nstest.LabNamed("script"), "--seconds", "0.5", "--flows", "2", "--rtts", "0.004", "0.008", "--losses", "0.01")
	cmd.Env = append(os.Environ(), "SCAFFOLD="+self, "PYTHONPATH=../../../clients/python")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"tcp_loss.json", "tcp_loss.svg", "tcp_loss.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 100 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
