package state

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount makes the lab's own bpffs: pins go with it.
func (d Dir) Mount() error {
	if err := os.MkdirAll(d.BPF(), 0o700); err != nil {
		return err
	}
	if err := unix.Mount("scaffold-lab", d.BPF(), "bpf", 0, "mode=700"); err != nil {
		return fmt.Errorf("mount a bpffs on %s: %w", d.BPF(), err)
	}
	return nil
}

// Unmount removes the lab's bpffs with all pins. Removing the directory as well detaches it in
// mount namespaces that copied it.
func (d Dir) Unmount() error {
	if err := removePins(d.BPF()); err != nil {
		return err
	}
	for { // more than one only if something mounted over it
		err := unix.Unmount(d.BPF(), unix.MNT_DETACH)
		if err == unix.EINVAL || err == unix.ENOENT {
			break
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", d.BPF(), err)
		}
	}
	return os.RemoveAll(d.BPF())
}

// removePins unpins everything, so that nothing stays attached even if the mount has other users. Names
// with a dot are the kernel's own (its preloaded iterators) and cannot be removed.
func removePins(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // never made
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".") {
			continue
		}
		if e := os.RemoveAll(dir + "/" + e.Name()); e != nil {
			err = e
		}
	}
	return err
}
