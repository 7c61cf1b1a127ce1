package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// large is a link to the directory that Large has made. No node has a name with a dot.
func (d Dir) large() string { return filepath.Join(d.Path(), ".large") }

// Large makes a directory for files that are too large for the lab's own one, which is in memory where /run is. It goes with
// the lab, also where whoever asked for it is killed: the link is there before the directory.
func (d Dir) Large() (path string, err error) {
	if err := d.RemoveLarge(); err != nil {
		return "", err
	}
	path = filepath.Join(os.TempDir(), "scaffold-lab-"+rand.Text()) // that nobody else has made, for nobody can guess it
	if err := os.Symlink(path, d.large()); err != nil {
		return "", fmt.Errorf("large files of lab %s: %w", d.Lab, err)
	}
	if err = os.Mkdir(path, 0o700); err == nil {
		err = os.Chmod(path, 0o755) // whatever the umask: servers that are not root read there
	}
	if err != nil {
		return "", fmt.Errorf("large files of lab %s: %w", d.Lab, err)
	}
	return path, nil
}

// RemoveLarge removes the directory, if there is one.
func (d Dir) RemoveLarge() error {
	path, err := os.Readlink(d.large())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(path), os.Remove(d.large()))
	}
	if err != nil {
		return fmt.Errorf("large files of lab %s: %w", d.Lab, err)
	}
	return nil
}
