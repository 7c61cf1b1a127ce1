package private

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is where daemons of the machine keep sockets and locks. Below it each network namespace has a directory, named
// by the number of its inode: labs run many daemons of a kind side by side.
const Root = "/run/scaffold"

// places holds the namespaces' directories, for root alone.
const places = Root + "/net"

// Place is the directory of the calling thread's network namespace. It is there while a daemon holds a place in it.
func Place() (string, error) {
	if err := Dir(Root); err != nil {
		return "", err
	}
	var here unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &here); err != nil {
		return "", fmt.Errorf("network namespace of the thread: %w", err)
	}
	return filepath.Join(places, strconv.FormatUint(here.Ino, 10)), nil
}

// ErrHeld says that another process has the place.
var ErrHeld = errors.New("held by another process")

// A held place is a file that is locked: the lock ends with the process, however it does.
type held struct{ file *os.File }

// Hold takes a name in the calling thread's network namespace until it is closed, or the process ends.
func Hold(name string) (io.Closer, error) {
	dir, err := Place()
	if err != nil {
		return nil, err
	}
	var h *held
	err = alone(func() error {
		sweep()
		if err := Dir(dir); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return ErrHeld
			}
			return err
		}
		h = &held{f}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Held reports whether a process has the name in the calling thread's network namespace. To look takes it from nobody.
func Held(name string) (taken bool, err error) {
	dir, err := Place()
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(dir); err != nil {
		return false, nil //nolint:nilerr // nobody has any here
	}
	err = alone(func() error {
		path := filepath.Join(dir, name+".lock")
		_, missing := os.Stat(path)
		taken = missing == nil && !free(path)
		return nil
	})
	return taken, err
}

// Close implements io.Closer.
func (h *held) Close() error {
	return alone(func() error {
		os.Remove(h.file.Name())               // by nobody else: all that make and remove are alone
		os.Remove(filepath.Dir(h.file.Name())) // if it was the last there
		return h.file.Close()
	})
}

// Listen opens a socket in the calling thread's network namespace. The file stays when the listener closes: the
// socket may be another process's by then. A file that nobody listens at is replaced.
func Listen(name string) (*net.UnixListener, error) {
	dir, err := Place()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	var l *net.UnixListener
	err = alone(func() error {
		if err := Dir(dir); err != nil {
			return err
		}
		if !dead(path) {
			return fmt.Errorf("%s: %w", path, ErrHeld)
		}
		os.Remove(path)
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return os.Chmod(path, 0o600)
	})
	return l, err
}

// Sweep removes what processes left that were killed.
func Sweep() error {
	if _, err := os.Stat(places); err != nil {
		return nil // there was never any
	}
	return alone(func() error {
		sweep()
		return nil
	})
}

func sweep() {
	files, _ := filepath.Glob(places + "/[0-9]*/*")
	for _, path := range files {
		if strings.HasSuffix(path, ".lock") && free(path) || strings.HasSuffix(path, ".sock") && dead(path) {
			os.Remove(path)
		}
	}
	dirs, _ := filepath.Glob(places + "/[0-9]*")
	for _, dir := range dirs {
		os.Remove(dir) // where nothing is in it
	}
}

// free reports whether nobody holds a lock.
func free(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// dead reports whether nobody listens at a socket, or there is none.
func dead(path string) bool {
	c, err := net.DialTimeout("unix", path, dialTime)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
}

// alone keeps other daemons out while files are made or removed, and leaves no directory that nobody needs. Who could
// hold the lock for long can already do worse: the directory is root's alone.
func alone(f func() error) error {
	for {
		if err := Dir(places); err != nil {
			return err
		}
		path := places + "/lock"
		lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, unix.ENOENT) {
			continue // the last one that needed it took it away
		}
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			return err
		}
		mine, err1 := lock.Stat()
		named, err2 := os.Stat(path)
		if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
			continue // removed between open and flock
		}
		err = f()
		if dirs, _ := filepath.Glob(places + "/[0-9]*"); len(dirs) == 0 {
			os.Remove(path)
			os.Remove(places)
		}
		return err
	}
}
