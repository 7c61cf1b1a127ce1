package wires

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Labs come up while others go down and take the empty directory along.
func TestAFileIsMadeWhileItsDirectoryIsTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "netns")
	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				os.Remove(dir)
			}
		}
	})
	for range 2000 {
		f, err := newFile(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	others.Wait()
	os.Mkdir(dir, 0o755)
	f, err := newFile(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := newFile(f.Name()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}
