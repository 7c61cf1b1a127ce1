package guests

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// A Namespace is another network namespace than the daemon's; the zero one is the daemon's own.
type Namespace struct{ file *os.File }

// nsfsMagic is the file system of namespaces, linux/magic.h.
const nsfsMagic = 0x6e736673

// errNoNamespace says that there is nothing, or something else.
var errNoNamespace = errors.New("no network namespace")

// A missingProcess is one by whose number a namespace was meant.
type missingProcess int

func (p missingProcess) Error() string { return fmt.Sprintf("no process %d", int(p)) }

// Is makes it a namespace that is not there.
func (p missingProcess) Is(target error) bool { return target == errNoNamespace }

// openNamespace opens one by the path that the kernel or `ip netns` gives it.
func openNamespace(path string) (Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return Namespace{}, unopened(path, err)
	}
	var fs unix.Statfs_t
	err = unix.Fstatfs(int(file.Fd()), &fs)
	if err == nil && fs.Type == nsfsMagic {
		if kind, e := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE); e == nil && kind == unix.CLONE_NEWNET {
			return Namespace{file}, nil
		}
	}
	file.Close()
	return Namespace{}, fmt.Errorf("%s is no network namespace", path)
}

// unopened says why a namespace could not be opened.
func unopened(path string, err error) error {
	pid := processOf(path)
	if path != fmt.Sprintf("/proc/%d/ns/net", pid) {
		pid = 0 // the process may be there, and what is below it not
	}
	switch gone := errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH); {
	case gone && pid > 0:
		return missingProcess(pid)
	case gone:
		return fmt.Errorf("%w at %s", errNoNamespace, path)
	case errors.Is(err, os.ErrPermission) && pid > 0:
		return fmt.Errorf("hostd may not enter the namespace of process %d: %w", pid, err)
	}
	return err
}

// inode tells it from others.
func (n Namespace) inode() (uint64, error) { return inodeOf(n.file.Name()) }

func inodeOf(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

// do runs f in the namespace, on a thread that ends with it: sockets, children and what f reads below
// /proc/sys/net are the namespace's. Goroutines that f starts are not in it.
func (n Namespace) do(f func() error) error {
	if n.file == nil {
		return f()
	}
	return nsenter.Do(n.file, f)
}

// Do is do, for others.
func (n Namespace) Do(f func() error) error { return n.do(f) }

// Join has the calling thread join it.
func (n Namespace) Join() error {
	if n.file == nil {
		return nil
	}
	return nsenter.Join(n.file)
}

func (n Namespace) close() {
	if n.file != nil {
		n.file.Close()
	}
}
