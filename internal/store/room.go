package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrFull says that the disk has no room; nothing was written, and nothing that was is lost.
var ErrFull = errors.New("disk full")

// reserve is how much must be free before we write: etcd's next segment of its log, and the pages
// that its database grows by.
const reserve = 2 * walSegment

// room looks at the disk under dir, or under where dir will be.
func room(dir string) error {
	var fsys unix.Statfs_t
	err := unix.Statfs(dir, &fsys)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &fsys)
	}
	if err != nil {
		return fmt.Errorf("store: look at the disk under %s: %w", dir, err)
	}
	if free := fsys.Bavail * uint64(fsys.Bsize); free < reserve {
		return fmt.Errorf("store: %w: %d KiB are free under %s, %d are needed: make room there; nothing was saved", ErrFull, free>>10, dir, reserve>>10)
	}
	return nil
}

func newBroken() *atomic.Pointer[string] { return new(atomic.Pointer[string]) }
