package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another process has the directory.
var ErrInUse = errors.New("in use")

// claim takes the directory for this process, until it ends: etcd would wait for another one's to be over.
func (s *Store) claim() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	path := filepath.Join(s.cfg.Dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("store: %s is %w: a controller runs on it: stop that first, or choose another directory", s.cfg.Dir, ErrInUse)
		}
		return fmt.Errorf("store: lock %s: %w", path, err)
	}
	s.lock = f
	return nil
}
