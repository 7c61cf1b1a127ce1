package store

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadLog: no bytes in a file of the log make it panic, hang or take memory without end.
func FuzzReadLog(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, filepath.Base(firstLog))
	f.Add([]byte{})
	f.Add([]byte{4, 0, 0, 0, 0, 0, 0, 0x84, 8, 4, 16, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if w, err := readLog(dir); err == nil && w.end > int64(len(b)) {
			t.Errorf("it ends at byte %d of %d", w.end, len(b))
		}
	})
}
