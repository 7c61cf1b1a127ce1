package frr

import (
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// within calls f on a thread of its own inside a network namespace, given by its path. Sockets that f opens and
// processes that it starts are the namespace's for ever.
func within(netns string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- func() error {
			file, err := os.Open(netns)
			if err != nil {
				return fmt.Errorf("network namespace: %w", err)
			}
			defer file.Close()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter network namespace %s: %w", netns, err)
			}
			return f()
		}()
	}()
	return <-done
}

// Indexes finds the numbers of interfaces in the namespace at path netns: positions in names, by number.
func Indexes(netns string, names []string) (at map[int]int, err error) {
	at = map[int]int{}
	err = within(netns, func() error {
		for i, name := range names {
			one, err := net.InterfaceByName(name)
			if err != nil {
				return fmt.Errorf("interface %s in %s: %w", name, netns, err)
			}
			at[one.Index] = i
		}
		return nil
	})
	return at, err
}
