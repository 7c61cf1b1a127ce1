// Package bpffs mounts the BPF file system that holds Scaffold's pins, and removes it when the last
// pin is gone.
package bpffs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Default is where the pins are when nobody says otherwise.
const Default = "/run/scaffold/bpf"

// source marks the mounts that Mount made; only those are unmounted.
const source = "scaffold"

// Mount makes dir a BPF file system unless it lies on one already.
func Mount(dir string) error {
	unlock, err := Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make %s for the BPF pins: %w", dir, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if int64(fs.Type) == unix.BPF_FS_MAGIC { //nolint:unconvert // shorter on some machines
		return nil
	}
	if err := unix.Mount(source, dir, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mount a BPF file system at %s: %w (needs root)", dir, err)
	}
	return nil
}

// Release unmounts dir if Mount mounted it and nothing is pinned there any more.
func Release(dir string) error {
	unlock, err := Lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if pinned, err := anyPins(dir); err != nil || pinned || !ours(dir) {
		return err
	}
	if err := unix.Unmount(dir, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return os.Remove(dir)
}

// anyPins reports whether something is pinned. The kernel puts two files of its own into every mount.
func anyPins(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if e.Name() != "progs.debug" && e.Name() != "maps.debug" {
			return true, nil
		}
	}
	return false, err
}

// LockName is of the file that is locked, beside the BPF file system, which it outlives.
const LockName = ".bpf.lock"

// Lock keeps other daemons of the machine out while pins below dir are made or removed. The file is this user's alone:
// a lock on the directory, which everybody may open, anybody could hold for ever.
func Lock(dir string) (unlock func(), err error) {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("make %s: %w", parent, err)
	}
	f, err := os.OpenFile(filepath.Join(parent, LockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the BPF pins: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", parent, err)
	}
	return func() { f.Close() }, nil
}

// ours reports whether the topmost mount at dir is one of Mount's.
func ours(dir string) bool {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer f.Close()
	found := false
	for s := bufio.NewScanner(f); s.Scan(); {
		head, tail, ok := strings.Cut(s.Text(), " - ")
		left, right := strings.Fields(head), strings.Fields(tail)
		if ok && len(left) > 4 && len(right) > 1 && left[4] == filepath.Clean(dir) {
			found = right[0] == "bpf" && right[1] == source
		}
	}
	return found
}
