package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another process has the directory.
var ErrInUse = errors.New("in use")

// A lock outlives the controller that had it for as long as a process that it began to start is between fork and exec:
// that has all files of its parent open, etcd's log among them, which etcd must not find locked (it ends its process
// then). Our lock is the last that a controller gives back, so whoever gets it gets the others, too.
const (
	claimPatience = 10 * time.Second // a busy machine may not run such a child for more than one
	claimEvery    = 5 * time.Millisecond
)

// claimed are the directories that this process has.
var claimed sync.Map

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
	for began := time.Now(); ; time.Sleep(claimEvery) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || owned(f) || time.Since(began) > claimPatience {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("store: %s is %w: a controller runs on it: stop that first, or choose another directory", s.cfg.Dir, ErrInUse)
		}
		return fmt.Errorf("store: lock %s: %w", path, err)
	}
	sign(f)
	claimed.Store(path, true)
	s.lock = f
	return nil
}

// unclaim gives the directory back.
func (s *Store) unclaim() {
	claimed.Delete(s.lock.Name())
	s.lock.Close()
}

// sign writes into the lock whose it is. A full disk has no room for that, and is told of elsewhere.
func sign(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
}

// owned reports whether the controller that signed the lock runs. A lock without a name in it is being signed, or is
// that of a version before.
func owned(f *os.File) bool {
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0)
	pid, err := strconv.Atoi(string(text[:n]))
	if err != nil || pid == os.Getpid() {
		_, ours := claimed.Load(f.Name())
		return err != nil && n == 0 || ours
	}
	return unix.Kill(pid, 0) != unix.ESRCH
}
