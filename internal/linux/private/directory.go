package private

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Dir makes a directory that this user alone may enter, if there is none, and makes sure that nobody else can change
// what is in it. One that others may read is taken as it is.
func Dir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return Check(path)
}

// Check says why others could change what is in a directory.
func Check(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch owner := info.Sys().(*syscall.Stat_t).Uid; {
	case info.Mode().Type() == os.ModeSymlink:
		if owner != 0 && owner != uint32(os.Geteuid()) {
			return fmt.Errorf("%s is a link that user %d made: remove it", path, owner)
		}
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		return Check(to)
	case !info.IsDir():
		return fmt.Errorf("%s is no directory: move it away", path)
	case owner != 0 && owner != uint32(os.Geteuid()):
		return fmt.Errorf("%s belongs to user %d, who could change what is in it: remove it, or name another directory", path, owner)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written to by others (mode %04o): chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}
