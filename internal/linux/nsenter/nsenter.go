// Package nsenter calls functions inside network namespaces.
//
// A namespace is a thread's, while goroutines run on any: what is opened or started on a thread belongs to the
// thread's namespace for ever, goroutines that begin there do not. A function therefore runs on a thread of its own
// that ends with it, or, where it must stay on the caller's goroutine, on a thread that comes back.
package nsenter

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// here is the namespace of the thread that opens it.
const here = "/proc/thread-self/ns/net"

// Thread calls f on a thread of its own, which ends with f: whatever f changes about its thread concerns nobody else.
func Thread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the process's first thread does not end, and /proc/self is what it sees
			defer runtime.UnlockOSThread()
			done <- Thread(f) // on another one, as this one is taken
			return
		}
		done <- f() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}

// Do calls f inside a namespace, on a thread of its own.
func Do(ns *os.File, f func() error) error {
	return Thread(func() error {
		if err := Join(ns); err != nil {
			return err
		}
		return f()
	})
}

// DoAt is Do in the namespace at a path; without one in this process's.
func DoAt(path string, f func() error) error {
	return Thread(func() error {
		if err := JoinAt(path); err != nil {
			return err
		}
		return f()
	})
}

// Join moves the calling thread, which must be locked, into a namespace for good.
func Join(ns *os.File) error {
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", ns.Name(), err)
	}
	return nil
}

// JoinAt is Join with the namespace at a path; without one the thread stays where it is.
func JoinAt(path string) error {
	if path == "" {
		return nil
	}
	ns, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	defer ns.Close()
	return Join(ns)
}

// Visit calls f inside a namespace on the calling goroutine, locked to its thread, and comes back however f ends.
func Visit(ns *os.File, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	back, err := Here()
	if err != nil {
		return err
	}
	defer back.Close()
	if same(back, ns) {
		return f()
	}
	if err := Join(ns); err != nil {
		return err
	}
	defer func() {
		if err := Join(back); err != nil {
			panic(fmt.Sprintf("nsenter: cannot come back: %v", err)) // the thread would stay in another namespace
		}
	}()
	return f()
}

func same(a, b *os.File) bool {
	x, errA := a.Stat()
	y, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// Here opens the namespace of the calling thread.
func Here() (*os.File, error) { return os.Open(here) }

// New makes a namespace without a name: it is gone with the file and with what runs inside. setUp, unless nil, is
// called inside before anybody else can be.
func New(setUp func() error) (ns *os.File, err error) {
	err = Thread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if setUp != nil {
			if err := setUp(); err != nil {
				return err
			}
		}
		ns, err = Here()
		return err
	})
	return ns, err
}
