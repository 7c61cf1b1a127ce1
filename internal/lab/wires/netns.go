package wires

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// makeNamespace makes a named namespace; one of that name must not exist.
func makeNamespace(name string) error {
	f, err := newFile(plan.NetnsPath(name))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("namespace %s exists already, and no lab owns it: remove it with: ip netns del %s", name, name)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	f.Close()
	ns, err := nsenter.New(func() error {
		return unix.Mount("/proc/thread-self/ns/net", plan.NetnsPath(name), "", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return ns.Close()
}

// newFile makes the file of a namespace, and the directory where there is none. Another lab that goes down takes that along
// while it is empty, between the two: then it is made again.
func newFile(path string) (f *os.File, err error) {
	for {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
}

// RemoveNamespace takes the name away. Removing the file also detaches copies of the mount in other
// mount namespaces, which would keep the namespace alive.
func RemoveNamespace(name string) error {
	path := plan.NetnsPath(name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("namespace %s: unmount: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// In runs f inside a namespace, on a thread of its own.
func In(name string, f func() error) error { return nsenter.DoAt(plan.NetnsPath(name), f) }

// sysctls sets values below /proc/sys/net of a namespace.
func sysctls(name string, values [][2]string) error {
	return In(name, func() error {
		for _, v := range values {
			if err := os.WriteFile("/proc/sys/net/"+v[0], []byte(v[1]), 0); err != nil {
				return fmt.Errorf("namespace %s: sysctl %s=%s: %w", name, v[0], v[1], err)
			}
		}
		return nil
	})
}
