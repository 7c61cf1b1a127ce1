package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A BusyError says that another process is changing the lab.
type BusyError struct {
	Name  string
	Owner int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("lab %s is in the hands of process %d (scaffold lab up, run or down): wait for it or end it", e.Name, e.Owner)
}

// Acquire takes the lab's lock, which the kernel gives back when this process dies.
func (d Dir) Acquire() (release func(), err error) {
	for {
		if err := os.MkdirAll(d.Base, 0o755); err != nil {
			return nil, fmt.Errorf("lab %s: %w", d.Lab, err)
		}
		f, err := os.OpenFile(d.lock(), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600) // who can open it can hold it
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last lab went away and took the directory with it
		}
		if err != nil {
			return nil, fmt.Errorf("lab %s: %w", d.Lab, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			return nil, d.busy()
		}
		if d.holds(f) {
			return func() { d.release(f) }, nil
		}
		f.Close() // removed by its former owner between open and flock
	}
}

// holds reports whether the open lock file is still the one that the path names.
func (d Dir) holds(f *os.File) bool {
	open, err1 := f.Stat()
	named, err2 := os.Stat(d.lock())
	return err1 == nil && err2 == nil && os.SameFile(open, named)
}

// release gives the lock back; the last lab to go takes the empty directories with it.
func (d Dir) release(f *os.File) {
	os.Remove(d.lock())
	f.Close()
	if os.Remove(d.Base) == nil {
		os.Remove(filepath.Dir(d.Base))
	}
}

func (d Dir) busy() error {
	e := &BusyError{Name: d.Lab}
	if s, err := d.Read(); err == nil && s != nil {
		e.Owner = s.Owner
	}
	return e
}
