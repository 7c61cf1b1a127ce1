package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/nsenter"
)

// A namespace is named by a bind mount in /run/netns, as iproute2 does it, so that ip(8) sees it.
func netnsPath(name string) string { return filepath.Join(netnsDir, name) }

// makeNetns makes a named namespace; one of that name must not exist.
func makeNetns(name string) error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	f, err := os.OpenFile(netnsPath(name), os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("namespace %s exists already, and no lab owns it: remove it with: ip netns del %s", name, name)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	f.Close()
	ns, err := nsenter.New(func() error {
		return unix.Mount("/proc/thread-self/ns/net", netnsPath(name), "", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return ns.Close()
}

// removeNetns takes the name away. Removing the file also detaches copies of the mount in other
// mount namespaces, which would keep the namespace alive.
func removeNetns(name string) error {
	path := netnsPath(name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("namespace %s: unmount: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// inNetns runs f inside a namespace, on a thread of its own.
func inNetns(name string, f func() error) error { return nsenter.DoAt(netnsPath(name), f) }

// sysctls sets values below /proc/sys/net of a namespace.
func sysctls(name string, values [][2]string) error {
	return inNetns(name, func() error {
		for _, v := range values {
			if err := os.WriteFile("/proc/sys/net/"+v[0], []byte(v[1]), 0); err != nil {
				return fmt.Errorf("namespace %s: sysctl %s=%s: %w", name, v[0], v[1], err)
			}
		}
		return nil
	})
}

// In calls f on a thread inside the network namespace of a node: sockets that f opens are the node's.
func (l *Lab) In(node string, f func() error) error {
	n := l.plan.Node(node)
	if n == nil {
		return fmt.Errorf("lab %s has no node %q; it has %s", l.File.Name, node, l.File.names())
	}
	return inNetns(n.Netns, f)
}
