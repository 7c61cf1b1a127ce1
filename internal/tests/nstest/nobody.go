package nstest

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// NobodyID is a user without any right.
const NobodyID = 65534

// Nobody calls f as a local user without rights: on a thread of its own, whose credentials the kernel asks for. What
// f starts as goroutines is root's.
func Nobody(t testing.TB, f func()) {
	t.Helper()
	as(t, User{ID: NobodyID, Group: NobodyID}, func() error { return nil }, f)
}

// A User is a local one, by numbers.
type User struct {
	ID, Group int
	Groups    []uint32 // further ones
}

// As is Nobody as another user.
func As(t testing.TB, who User, f func()) {
	t.Helper()
	as(t, who, func() error { return nil }, f)
}

// Nobody is Nobody inside the namespace.
func (n *NS) Nobody(t testing.TB, f func()) {
	t.Helper()
	as(t, User{ID: NobodyID, Group: NobodyID}, func() error { return nsenter.Join(n.file) }, f)
}

func as(t testing.TB, who User, before func() error, f func()) {
	t.Helper()
	Root(t)
	err := nsenter.Thread(func() error {
		if err := before(); err != nil {
			return err
		}
		// syscall.Setuid would change all threads of the process.
		id, group := uintptr(who.ID), uintptr(who.Group)
		groups := uintptr(unsafe.Pointer(unsafe.SliceData(who.Groups)))
		for _, c := range [][4]uintptr{{unix.SYS_SETGROUPS, uintptr(len(who.Groups)), groups}, {unix.SYS_SETRESGID, group, group, group}, {unix.SYS_SETRESUID, id, id, id}} {
			if _, _, errno := syscall.RawSyscall(c[0], c[1], c[2], c[3]); errno != 0 {
				return fmt.Errorf("become user %d: %w", who.ID, errno)
			}
		}
		runtime.KeepAlive(who.Groups)
		f()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
