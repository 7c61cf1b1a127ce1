package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/linux/durable"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	safety.Test(t, safety.Record)
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for _, text := range []string{"first", "2nd"} {
		if err := durable.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != text {
			t.Fatalf("%q %v, want %q", got, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v, want mode 0600", info.Mode(), err)
	}
	for _, bad := range []string{filepath.Join(dir, "none", "key"), dir} {
		if err := durable.Write(bad, []byte("x"), 0o600); err == nil {
			t.Errorf("%s was written", bad)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%v are left, want the file alone", left)
	}
}

func TestAFileThatIsThereIsNotCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := durable.Create(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.Create(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want that it is there", err)
	}
	if got, err := os.ReadFile(path); string(got) != "first" {
		t.Errorf("%q %v, want the first text", got, err)
	}
}
