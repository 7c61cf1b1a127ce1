// Package durable writes files that must outlive a machine that loses its power: keys, credentials, units, backups.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write replaces a file whole or not at all: the new one is on the disk before it gets the name, and the name is
// before Write returns. The directory must be there.
func Write(path string, text []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(text); err == nil {
		err = f.Chmod(mode)
	}
	if err != nil {
		return err
	}
	return Replace(f, path)
}

// Create writes a file that is not there yet; fs.ErrExist says that it is.
func Create(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(path)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Replace closes a file and gives it the name path, in the place of what has it: what was written to it is on the disk
// before, the name when Replace returns.
func Replace(f *os.File, path string) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir puts the names in a directory on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // of a file system that has no such thing
		return err
	}
	return nil
}
