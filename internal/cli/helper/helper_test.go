package helper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who was asked to end before the other program began would else begin it, and the signal were forgotten.
func TestWhoWasAskedToEndCallsNobody(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := Exec(ctx, "/bin/false", "false", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAProgramThatIsNotThereIsNamed(t *testing.T) {
	if err := Exec(t.Context(), "/nowhere/scaffold-bench", "scaffold-bench", nil); err == nil || !strings.Contains(err.Error(), "/nowhere/scaffold-bench") {
		t.Error(err)
	}
}

func TestAHelperInPATHIsFoundAndKnowsItsCaller(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if path, err := Find("scaffold-helper"); err == nil {
		t.Errorf("found %s, which is not there", path)
	}
	want := filepath.Join(dir, "scaffold-helper")
	if err := os.WriteFile(want, []byte("#!/bin/sh\necho \"$SCAFFOLD_PROGRAM\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := Find("scaffold-helper")
	if err != nil || path != want {
		t.Fatalf("%q, %v, want %q", path, err, want)
	}
	cmd, err := Command(path)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	if said, err := cmd.Output(); strings.TrimSpace(string(said)) != self || err != nil {
		t.Errorf("it was called by %q, %v; want %q", said, err, self)
	}
}
