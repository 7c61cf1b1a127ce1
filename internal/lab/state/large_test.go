package state

import (
	"os"
	"path/filepath"
	"testing"
)

// Files that are too large for memory go with the lab, whoever made them, and at whatever moment it was killed.
func TestLargeFilesGoWithTheLab(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := here(t, "net")
	if err := os.MkdirAll(d.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		path, err := d.Large()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "file"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) != 1 {
			t.Errorf("%v", left)
		}
	}
	for range 2 {
		if err := d.RemoveLarge(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Symlink(filepath.Join(os.TempDir(), "never-made"), d.large()); err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveLarge(); err != nil {
		t.Errorf("killed before it was made: %v", err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}
