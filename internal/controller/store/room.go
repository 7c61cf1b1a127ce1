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

// Disk is how much is free on the disk under an embedded store, and how much a write needs. Of an etcd elsewhere nobody
// here can say: there is nothing to look at then.
func (s *Store) Disk() (free, needed uint64, looked bool) {
	if len(s.cfg.Endpoints) > 0 || s.cfg.Dir == "" {
		return 0, 0, false
	}
	free, _, err := freeUnder(s.cfg.Dir)
	return free, reserve, err == nil
}

// Room says what is wrong with the disk of an embedded store, before anybody wants to write.
func (s *Store) Room() error {
	if len(s.cfg.Endpoints) > 0 || s.cfg.Dir == "" {
		return nil
	}
	return room(s.cfg.Dir)
}

// room looks at the disk under dir.
func room(dir string) error {
	free, at, err := freeUnder(dir)
	if err != nil {
		return err
	}
	if free < reserve {
		return fmt.Errorf("%w: %d KiB are free under %s, %d KiB are needed: make room there", ErrFull, free>>10, at, reserve>>10)
	}
	return nil
}

// freeUnder is what is free under dir, or under where dir will be.
func freeUnder(dir string) (free uint64, at string, err error) {
	var fsys unix.Statfs_t
	err = unix.Statfs(dir, &fsys)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &fsys)
	}
	if err != nil {
		return 0, dir, fmt.Errorf("store: look at the disk under %s: %w", dir, err)
	}
	return fsys.Bavail * uint64(fsys.Bsize), dir, nil
}

func newBroken() *atomic.Pointer[string] { return new(atomic.Pointer[string]) }
