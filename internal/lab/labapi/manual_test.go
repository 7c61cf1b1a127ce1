package labapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

var block = regexp.MustCompile("(?s)```sh\n(.*?)```")

// What docs/lab-api.md shows is run word for word, beside the server that its first block starts.
func TestTheCallsOfTheManualWork(t *testing.T) {
	nstest.Root(t)
	nstest.Program(t, "curl", "curl")
	text, err := os.ReadFile("../../../docs/lab-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, m := range block.FindAllStringSubmatch(string(text), -1)[1:] {
		script.WriteString(m[1] + "\necho\n")
	}
	start(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script.String())
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), "PATH="+commands(t)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), `"code":`) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{`"slow"`, `hello from s`, `"delay":"100000000"`, `"cut`, `"pid":`, `"ended":`, `"removed":`} {
		if !strings.Contains(strings.ReplaceAll(string(out), `": `, `":`), want) {
			t.Errorf("nothing says %s in\n%s", want, out)
		}
	}
	if all := left("slow"); len(all) > 0 {
		t.Errorf("it left %v", all)
	}
}

// commands is a directory with what the manual's lines begin with: the product, and a sudo for those who are root.
func commands(t *testing.T) string {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"sudo": `exec "$@"`, "scaffold": "exec " + self + ` "$@"`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	return dir
}
