package badinput

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// self is this test binary, which is also the whole product.
const self = "/proc/self/exe"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	nstest.Main(m)
}

// scaffold runs a command of the product to its end.
func scaffold(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return ends(t, exec.Command(self, args...))
}

func ends(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
