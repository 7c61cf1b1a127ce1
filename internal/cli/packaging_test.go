package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestManualHasAPageForEachCommand: packages bring it, and man can read it.
func TestManualHasAPageForEachCommand(t *testing.T) {
	root, pages := New(), map[string]string{}
	if err := eachPage(root, func(path, text string) error { pages[path] = text; return nil }); err != nil {
		t.Fatal(err)
	}
	commandtest.Leaves(root, func(cmd *cobra.Command) {
		if cmd.IsAdditionalHelpTopicCommand() || strings.HasPrefix(cmd.CommandPath(), "scaffold completion") {
			return
		}
		path := "man1/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if !strings.Contains(pages[path], ".SH EXAMPLES") {
			t.Errorf("%s: no page, or none with examples", path)
		}
	})
	if !strings.Contains(pages["man5/scaffold.yaml.5"], ".SH KEYS OF HOSTD") {
		t.Error("scaffold.yaml(5) lists no keys")
	}
	man, err := exec.LookPath("man")
	if err != nil {
		return
	}
	for _, path := range []string{"man1/scaffold.1", "man1/scaffold-hostd.1", "man5/scaffold.yaml.5"} {
		cmd := exec.Command(man, "--warnings", "-l", "-")
		cmd.Stdin = strings.NewReader(pages[path])
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANROFFSEQ=", "MANWIDTH=80")
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil || complaints.Len() > 0 || out.Len() < 1000 {
			t.Errorf("man %s: %v, %d bytes, %s", path, err, out.Len(), complaints.String())
		}
	}
}

// TestUnitsAreGoodToSystemd has systemd read what a package would bring.
func TestUnitsAreGoodToSystemd(t *testing.T) {
	analyze := nstest.Program(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	if err := packaging(New(), dir); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "usr/bin/scaffold")
	if err := put(dir, "usr/bin/scaffold", []byte("#!/bin/sh\n")); err != nil {
		t.Fatal(err)
	}
	os.Chmod(program, 0o755)
	units, _ := filepath.Glob(filepath.Join(dir, "lib/systemd/system/*"))
	if len(units) != 6 {
		t.Fatalf("units: %q", units)
	}
	for _, path := range units { // the program is not where it will be
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(path, bytes.ReplaceAll(text, []byte("/usr/bin/scaffold"), []byte(program)), 0o644)
	}
	cmd := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "scaffold-") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestCompletionIsPackaged(t *testing.T) {
	dir := t.TempDir()
	if err := packaging(New(), dir); err != nil {
		t.Fatal(err)
	}
	for path := range completions {
		if raw, err := os.ReadFile(filepath.Join(dir, "usr/share", path)); err != nil || !bytes.Contains(raw, []byte("scaffold")) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
